#include "testing/store_testing.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/server_credentials.h>

#include "weir/embed/clock.h"

namespace weir::inline v0::grpc::testing {
namespace {

constexpr std::chrono::seconds kPatience(20);
constexpr int kWrites = 3;

class SyncStore final : public Store::Service {
 public:
  explicit SyncStore(Behaviour& behaviour) : behaviour_(behaviour) {}

  ::grpc::Status GetValue(::grpc::ServerContext* context, const Value* request,
                          Value* response) override {
    behaviour_.desk.stay();
    response->set_data(request->data());
    return behaviour_.end(*context);
  }
  ::grpc::Status MigrateTransfer(::grpc::ServerContext* context,
                                 ::grpc::ServerReader<Value>* reader, Value* response) override {
    Value value;
    while (reader->Read(&value)) response->set_data(value.data());
    behaviour_.desk.stay();
    return behaviour_.end(*context);
  }
  ::grpc::Status Scan(::grpc::ServerContext* context, const Value* request,
                      ::grpc::ServerWriter<Value>* writer) override {
    for (int i = 0; i < kWrites; ++i) writer->Write(*request);
    behaviour_.desk.stay();
    return behaviour_.end(*context);
  }
  ::grpc::Status Sync(::grpc::ServerContext* context,
                      ::grpc::ServerReaderWriter<Value, Value>* stream) override {
    Value value;
    while (stream->Read(&value)) stream->Write(value);
    behaviour_.desk.stay();
    return behaviour_.end(*context);
  }

 private:
  Behaviour& behaviour_;
};

class Reader final : public ::grpc::ServerReadReactor<Value> {
 public:
  Reader(Behaviour& behaviour, ::grpc::CallbackServerContext& context, Value& response)
      : behaviour_(behaviour), context_(context), response_(response) {
    StartRead(&value_);
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      response_.set_data(value_.data());
      return StartRead(&value_);
    }
    behaviour_.desk.stay([this] { Finish(behaviour_.end(context_)); });
  }
  void OnDone() override { delete this; }

 private:
  Behaviour& behaviour_;
  ::grpc::CallbackServerContext& context_;
  Value& response_;
  Value value_;
};

class Writer final : public ::grpc::ServerWriteReactor<Value> {
 public:
  Writer(Behaviour& behaviour, ::grpc::CallbackServerContext& context, Value value)
      : behaviour_(behaviour), context_(context), value_(std::move(value)) {
    StartWrite(&value_);
  }
  void OnWriteDone(bool ok) override {
    if (ok && ++written_ < kWrites) return StartWrite(&value_);
    behaviour_.desk.stay([this] { Finish(behaviour_.end(context_)); });
  }
  void OnDone() override { delete this; }

 private:
  Behaviour& behaviour_;
  ::grpc::CallbackServerContext& context_;
  Value value_;
  int written_ = 0;
};

class Echo final : public ::grpc::ServerBidiReactor<Value, Value> {
 public:
  Echo(Behaviour& behaviour, ::grpc::CallbackServerContext& context)
      : behaviour_(behaviour), context_(context) {
    StartRead(&value_);
  }
  void OnReadDone(bool ok) override {
    if (ok) return StartWrite(&value_);
    behaviour_.desk.stay([this] { Finish(behaviour_.end(context_)); });
  }
  void OnWriteDone(bool) override { StartRead(&value_); }
  void OnDone() override { delete this; }

 private:
  Behaviour& behaviour_;
  ::grpc::CallbackServerContext& context_;
  Value value_;
};

class CallbackStore final : public Store::CallbackService {
 public:
  explicit CallbackStore(Behaviour& behaviour) : behaviour_(behaviour) {}

  ::grpc::ServerUnaryReactor* GetValue(::grpc::CallbackServerContext* context, const Value* request,
                                       Value* response) override {
    ::grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    behaviour_.desk.stay([this, context, request, response, reactor] {
      response->set_data(request->data());
      reactor->Finish(behaviour_.end(*context));
    });
    return reactor;
  }
  ::grpc::ServerReadReactor<Value>* MigrateTransfer(::grpc::CallbackServerContext* context,
                                                    Value* response) override {
    return new Reader(behaviour_, *context, *response);
  }
  ::grpc::ServerWriteReactor<Value>* Scan(::grpc::CallbackServerContext* context,
                                          const Value* request) override {
    return new Writer(behaviour_, *context, *request);
  }
  ::grpc::ServerBidiReactor<Value, Value>* Sync(::grpc::CallbackServerContext* context) override {
    return new Echo(behaviour_, *context);
  }

 private:
  Behaviour& behaviour_;
};

}  // namespace

void Desk::hold() {
  const std::scoped_lock lock(mutex_);
  holds_ = true;
}

void Desk::release() {
  std::vector<std::function<void()>> leaving;
  {
    const std::scoped_lock lock(mutex_);
    holds_ = false;
    leaving = std::exchange(staying_, {});
  }
  for (auto& leave : leaving) let_go(std::move(leave));
}

void Desk::release_one() {
  std::function<void()> leave;
  {
    const std::scoped_lock lock(mutex_);
    if (staying_.empty()) return;
    leave = std::move(staying_.front());
    staying_.erase(staying_.begin());
  }
  let_go(std::move(leave));
}

bool Desk::wait_until_inside(int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return inside_ == count; });
}

bool Desk::wait_until_entered(int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return entered_ >= count; });
}

int Desk::most_inside() const {
  const std::scoped_lock lock(mutex_);
  return most_inside_;
}

int Desk::entered() const {
  const std::scoped_lock lock(mutex_);
  return entered_;
}

void Desk::stay() {
  std::promise<void> released;
  stay([&released] { released.set_value(); });
  released.get_future().wait();
}

void Desk::stay(std::function<void()> leave) {
  {
    const std::scoped_lock lock(mutex_);
    ++entered_;
    most_inside_ = std::max(most_inside_, ++inside_);
    changed_.notify_all();
    if (holds_) {
      staying_.push_back(std::move(leave));
      return;
    }
  }
  let_go(std::move(leave));
}

void Desk::let_go(std::function<void()> leave) {
  {
    const std::scoped_lock lock(mutex_);
    --inside_;
    changed_.notify_all();
  }
  leave();  // last: it may end the call, and with it what else the test has
}

std::unique_ptr<::grpc::Service> make_sync_store(Behaviour& behaviour) {
  return std::make_unique<SyncStore>(behaviour);
}

std::unique_ptr<::grpc::Service> make_callback_store(Behaviour& behaviour) {
  return std::make_unique<CallbackStore>(behaviour);
}

AdmissionConfig limit_of(std::uint32_t limit) {
  AdmissionConfig config;
  config.limit.policy = LimitKind::kFixed;
  config.limit.initial_limit = limit;
  config.limit.min_limit = std::min(limit, 8U);
  return config;
}

std::string Answer::trailer(const std::string& key) const {
  const auto found = trailers.find(key);
  return found == trailers.end() ? std::string() : found->second;
}

TestServer::TestServer(const AdmissionConfig& config, ServerOptions options, const Prepare& prepare)
    : controller_(config, Rng(17)), builder_(controller_, std::move(options)) {
  builder_.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(), &port_);
  prepare(builder_);
  server_ = builder_.BuildAndStart();
  WEIR_ASSERT(server_ != nullptr);
  ::grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  channel_ =
      ::grpc::CreateCustomChannel(address(), ::grpc::InsecureChannelCredentials(), arguments);
}

TestServer::TestServer(const AdmissionConfig& config, ServerOptions options,
                       ::grpc::Service& service)
    : TestServer(config, std::move(options),
                 [&](::grpc::ServerBuilder& builder) { builder.RegisterService(&service); }) {}

TestServer::~TestServer() {
  builder_.admission().close();
  server_->Shutdown();
}

ScopeStats TestServer::stats() {
  return controller_.scope_stats(ScopeId::kFirst, embed::now());
}

bool TestServer::wait_until_idle() {
  const TimePoint end = embed::now() + kPatience;
  while (embed::now() < end) {
    const AdmissionStats now = controller_.stats();
    if (now.in_flight == 0 && now.streaming == 0 && now.bytes == 0) return true;
    std::this_thread::yield();
  }
  return false;
}

std::string TestServer::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

void prepare(::grpc::ClientContext& context, const CallWish& wish) {
  for (const auto& [key, value] : wish.metadata) context.AddMetadata(key, value);
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_nanos(wish.timeout.count(), GPR_TIMESPAN)));
}

std::future<Answer> get_value(Store::Stub& stub, const CallWish& wish) {
  struct Call {
    ::grpc::ClientContext context{};
    Value request{};
    Value response{};
    std::promise<Answer> answer{};
    TimePoint begun = embed::now();
  };
  auto* const call = new Call;
  prepare(call->context, wish);
  call->request.set_data(wish.data);
  std::future<Answer> answer = call->answer.get_future();
  stub.async()->GetValue(
      &call->context, &call->request, &call->response, [call](const ::grpc::Status& status) {
        Answer made{
            .status = status, .data = call->response.data(), .took = embed::now() - call->begun};
        for (const auto& [key, value] : call->context.GetServerTrailingMetadata()) {
          made.trailers.emplace(std::string(key.data(), key.size()),
                                std::string(value.data(), value.size()));
        }
        // A context holds its channel. The last one must not end here: a channel waits for this
        // thread when it ends.
        std::promise<Answer> promise = std::move(call->answer);
        delete call;
        promise.set_value(std::move(made));
      });
  return answer;
}

Answer ask_value(Store::Stub& stub, const CallWish& wish) {
  return get_value(stub, wish).get();
}

}  // namespace weir::inline v0::grpc::testing
