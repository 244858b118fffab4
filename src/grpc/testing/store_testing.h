#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server.h>

#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/experimental/grpc/server_builder.h"

#include "src/grpc/testing/store.grpc.pb.h"

namespace weir::inline v0::grpc::testing {

using weir::testing::Store;
using weir::testing::Value;
inline constexpr char kGetValue[] = "/weir.testing.Store/GetValue";
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Where the handlers of a test stay until it lets them go. Waits of the test end after 20 s.
class Desk {
 public:
  /// From now on, handlers that enter stay.
  void hold();
  /// Lets all go, and does not hold any more.
  void release();
  /// Lets go the one that has stayed longest.
  void release_one();
  [[nodiscard]] bool wait_until_inside(int count);
  [[nodiscard]] bool wait_until_entered(int count);
  [[nodiscard]] int most_inside() const;
  [[nodiscard]] int entered() const;

  /// For handlers that block their thread.
  void stay();
  /// For others: `leave` is called at once or when they may go.
  void stay(std::function<void()> leave);

 private:
  void let_go(std::function<void()> leave);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> staying_;
  bool holds_ = false;
  int inside_ = 0;
  int most_inside_ = 0;
  int entered_ = 0;
};

/// What the handlers of a store do.
struct Behaviour {
  Desk desk{};
  /// The status that a handler ends with; without one, OK.
  std::function<::grpc::Status(::grpc::ServerContextBase&)> ends{};

  [[nodiscard]] ::grpc::Status end(::grpc::ServerContextBase& context) const {
    return ends ? ends(context) : ::grpc::Status::OK;
  }
};

/// The service by the sync API and by the callback API. GetValue returns its value, when the desk
/// lets it go; so do the others with the last one, after they have read, or written three values.
std::unique_ptr<::grpc::Service> make_sync_store(Behaviour& behaviour);
std::unique_ptr<::grpc::Service> make_callback_store(Behaviour& behaviour);

/// A fixed limit; everything else as by default.
[[nodiscard]] AdmissionConfig limit_of(std::uint32_t limit);

/// How one call ended.
struct Answer {
  ::grpc::Status status{};
  std::multimap<std::string, std::string> trailers{};
  std::string data{};
  Duration took{};

  [[nodiscard]] std::string trailer(const std::string& key) const;
};

/// A server with one controller on a free port of the loopback interface, and a channel to it.
class TestServer {
 public:
  using Prepare = std::function<void(::grpc::ServerBuilder&)>;

  TestServer(const AdmissionConfig& config, ServerOptions options, const Prepare& prepare);
  TestServer(const AdmissionConfig& config, ServerOptions options, ::grpc::Service& service);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] AdmissionController& controller() { return controller_; }
  [[nodiscard]] ScopeStats stats();
  /// Waits until nothing is in flight and nothing is streaming.
  [[nodiscard]] bool wait_until_idle();
  [[nodiscard]] Admission admission() const { return builder_.admission(); }
  [[nodiscard]] ::grpc::Server& server() { return *server_; }
  [[nodiscard]] std::string address() const;
  [[nodiscard]] const std::shared_ptr<::grpc::Channel>& channel() const { return channel_; }
  [[nodiscard]] std::unique_ptr<Store::Stub> stub() const { return Store::NewStub(channel_); }

 private:
  AdmissionController controller_;
  weir::grpc::ServerBuilder builder_;
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;
  std::shared_ptr<::grpc::Channel> channel_;
};

/// The options of one call.
struct CallWish {
  Pairs metadata{};
  std::string data = "value";
  Duration timeout = std::chrono::seconds(20);
};

/// GetValue without blocking; the stub must outlive the answer.
[[nodiscard]] std::future<Answer> get_value(Store::Stub& stub, const CallWish& wish = {});
/// The same, blocking.
[[nodiscard]] Answer ask_value(Store::Stub& stub, const CallWish& wish = {});
void prepare(::grpc::ClientContext& context, const CallWish& wish);

}  // namespace weir::inline v0::grpc::testing
