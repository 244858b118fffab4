// Streams move to streaming when they are admitted, and hold their seat to the last byte.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "weir/embed/clock.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;

/// A kind of stream, opened and ended by a client.
class OpenStream {
 public:
  virtual ~OpenStream() = default;
  virtual void send_all() {}
  virtual ::grpc::Status finish() = 0;
  ::grpc::ClientContext context{};
};

class Transfer final : public OpenStream {
 public:
  explicit Transfer(Store::Stub& stub) : writer_(stub.MigrateTransfer(&context, &response_)) {
    writer_->Write(Value());
  }
  void send_all() override { writer_->WritesDone(); }
  ::grpc::Status finish() override { return writer_->Finish(); }

 private:
  Value response_;
  std::unique_ptr<::grpc::ClientWriter<Value>> writer_;
};

class Scan final : public OpenStream {
 public:
  explicit Scan(Store::Stub& stub) : reader_(stub.Scan(&context, Value())) {}
  ::grpc::Status finish() override {
    Value value;
    int values = 0;
    while (reader_->Read(&value)) ++values;
    const ::grpc::Status status = reader_->Finish();
    if (status.ok()) {
      EXPECT_EQ(values, 3);
    }
    return status;
  }

 private:
  std::unique_ptr<::grpc::ClientReader<Value>> reader_;
};

class Talk final : public OpenStream {
 public:
  explicit Talk(Store::Stub& stub) : stream_(stub.Sync(&context)) {
    Value value;
    stream_->Write(value);
    stream_->Read(&value);
  }
  void send_all() override { stream_->WritesDone(); }
  ::grpc::Status finish() override { return stream_->Finish(); }

 private:
  std::unique_ptr<::grpc::ClientReaderWriter<Value, Value>> stream_;
};

struct Case {
  bool callback;
  char kind;
};

class Streams : public ::testing::TestWithParam<Case> {
 protected:
  static ServerOptions one_actor() {
    ServerOptions options;
    options.actor = [](const ::grpc::ServerContextBase&) { return std::string("alice"); };
    options.methods = {{"/weir.testing.Store/GetValue", {.priority = Priority::kLow}}};
    return options;
  }
  static AdmissionConfig two_at_once() {
    AdmissionConfig config = limit_of(8);
    config.inflight_max = 2;
    return config;
  }
  std::unique_ptr<OpenStream> open() {
    switch (GetParam().kind) {
      case 'c':
        return std::make_unique<Transfer>(*stub_);
      case 's':
        return std::make_unique<Scan>(*stub_);
      default:
        return std::make_unique<Talk>(*stub_);
    }
  }
  bool wait_until_streaming(std::uint32_t units) {
    for (int i = 0; i < 20'000'000; ++i) {
      if (server_.controller().stats().streaming == units) return true;
      std::this_thread::yield();
    }
    return false;
  }

  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_ =
      GetParam().callback ? make_callback_store(behaviour_) : make_sync_store(behaviour_);
  TestServer server_{two_at_once(), one_actor(), *store_};
  std::unique_ptr<Store::Stub> stub_ = server_.stub();
};

INSTANTIATE_TEST_SUITE_P(Kinds, Streams,
                         ::testing::Values(Case{false, 'c'}, Case{false, 's'}, Case{false, 'b'},
                                           Case{true, 'c'}, Case{true, 's'}, Case{true, 'b'}),
                         [](const auto& which) {
                           return std::string(which.param.callback ? "Callback" : "Sync") +
                                  which.param.kind;
                         });

TEST_P(Streams, AnOpenStreamHoldsItsActorAndNotTheLimit) {
  behaviour_.desk.hold();
  const auto first = open();
  const auto second = open();
  ASSERT_TRUE(wait_until_streaming(2));
  EXPECT_EQ(server_.stats().in_flight, 0U);
  first->send_all();
  second->send_all();
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(2));
  EXPECT_EQ(ask_value(*stub_).trailer("x-weir-reason"), "actor_inflight");
  const auto third = open();
  EXPECT_EQ(third->finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);

  behaviour_.desk.release_one();
  behaviour_.desk.release();
  EXPECT_TRUE(first->finish().ok());
  EXPECT_TRUE(second->finish().ok());
  EXPECT_TRUE(server_.wait_until_idle());
  EXPECT_EQ(server_.stats().samples, 0U) << "its time is that of its client";
  EXPECT_TRUE(ask_value(*stub_).status.ok());
}

TEST_P(Streams, BeyondStreamsMaxAStreamKeepsItsUnitInTheLimitUntilItEnds) {
  AdmissionConfig config = limit_of(8);
  config.streams_max = 1;
  TestServer server(config, {}, *store_);
  stub_ = server.stub();
  behaviour_.desk.hold();
  const auto first = open();
  const auto second = open();
  const TimePoint give_up = embed::now() + std::chrono::seconds(20);
  while (server.controller().stats().streaming + server.stats().in_flight < 2 &&
         embed::now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(server.controller().stats().streaming, 1U);
  EXPECT_EQ(server.stats().in_flight, 1U);
  first->send_all();
  second->send_all();
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(2));
  behaviour_.desk.release();
  EXPECT_TRUE(first->finish().ok());
  EXPECT_TRUE(second->finish().ok());
  EXPECT_TRUE(server.wait_until_idle());
  EXPECT_EQ(server.stats().samples, 0U) << "its time is that of its client";
}

TEST_P(Streams, AStreamThatItsClientCancelsGivesEverythingBack) {
  behaviour_.desk.hold();
  const auto stream = open();
  ASSERT_TRUE(wait_until_streaming(1));
  stream->context.TryCancel();
  stream->send_all();
  EXPECT_EQ(stream->finish().error_code(), StatusCode::CANCELLED);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(1));
  behaviour_.desk.release();
  EXPECT_TRUE(server_.wait_until_idle());
  EXPECT_EQ(server_.stats().errors, 0U);
}

constexpr std::size_t kLarge = 3 << 20;  // far more than a window of HTTP/2

/// Sends one large message with its status, and says when it has done so.
class LargeScan final : public Store::CallbackService {
 public:
  ::grpc::ServerWriteReactor<Value>* Scan(::grpc::CallbackServerContext*, const Value*) override {
    class Reactor final : public ::grpc::ServerWriteReactor<Value> {
     public:
      explicit Reactor(std::promise<void>& sent) {
        value_.set_data(std::string(kLarge, 'x'));
        StartWriteAndFinish(&value_, {}, ::grpc::Status::OK);
        sent.set_value();
      }
      void OnDone() override { delete this; }

     private:
      Value value_;
    };
    return new Reactor(sent);
  }
  ::grpc::ServerUnaryReactor* GetValue(::grpc::CallbackServerContext* context, const Value*,
                                       Value*) override {
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(::grpc::Status::OK);
    return reactor;
  }
  std::promise<void> sent;
};

TEST(LargeStreams, AStreamThatItsClientDoesNotReadHoldsItsSeatToTheLastByte) {
  LargeScan store;
  TestServer server(limit_of(4), {}, store);
  // A client that grants 64 KB and no more until it reads.
  ::grpc::ChannelArguments narrow;
  narrow.SetInt("grpc.use_local_subchannel_pool", 1);
  narrow.SetInt("grpc.http2.bdp_probe", 0);
  const auto stub = Store::NewStub(
      ::grpc::CreateCustomChannel(server.address(), ::grpc::InsecureChannelCredentials(), narrow));
  ::grpc::ClientContext context;
  const auto reader = stub->Scan(&context, Value());
  store.sent.get_future().wait();
  // The handler has nothing left to do, and the server has time for other calls.
  const auto other = server.stub();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(ask_value(*other).status.ok());
  EXPECT_EQ(server.controller().stats().streaming, 1U);
  Value value;
  ASSERT_TRUE(reader->Read(&value));
  EXPECT_EQ(value.data().size(), kLarge);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(server.wait_until_idle());
}

}  // namespace
}  // namespace weir::grpc
