#include "demo_replica.h"

#include <array>
#include <deque>

#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/server.h"
#include "weir/experimental/server/stream.h"

namespace weir::app {
namespace {

/// `workers` requests at once, the others queued first come, first served: a service with a fixed
/// capacity, as most are.
class ReplicaHandler final : public Handler {
 public:
  ReplicaHandler(const ReplicaManner& manner, io::Loop& loop) : manner_(manner), loop_(loop) {
    started_at_ = loop.now();
    for (std::uint32_t i = 0; i < manner.workers; ++i) workers_.emplace_back(*this);
  }
  ~ReplicaHandler() override {
    for (Worker& worker : workers_) loop_.cancel(worker.timer);
  }

  void on_headers(ServerStream&, const ServerRequest&) override {}
  void on_complete(ServerStream& stream) override {
    line_.push_back(&stream);
    give_out_work();
  }
  void on_abort(ServerStream& stream, CloseReason) override {
    std::erase(line_, &stream);
    for (Worker& worker : workers_) {
      if (worker.stream == &stream) worker.stream = nullptr;  // the worker continues anyway
    }
  }

 private:
  struct Worker {
    explicit Worker(ReplicaHandler& owner) : handler(owner) {
      timer.on_fire(io::Timer::Fired::to<&Worker::done>(*this));
    }
    void done(TimePoint) { handler.finish(*this); }

    ReplicaHandler& handler;
    io::Timer timer;
    ServerStream* stream = nullptr;
    bool busy = false;
  };

  [[nodiscard]] bool slow_now() {
    if (manner_.slow_every <= Duration(0)) return false;
    return (loop_.now() - started_at_) % manner_.slow_every >=
           manner_.slow_every - manner_.slow_for;
  }

  void give_out_work() {
    constexpr int kSlowFactor = 10;
    for (Worker& worker : workers_) {
      if (line_.empty()) return;
      if (worker.busy) continue;
      worker.busy = true;
      worker.stream = line_.front();
      line_.pop_front();
      const bool slow = slow_now();
      loop_.arm(worker.timer, slow ? manner_.service_time * kSlowFactor : manner_.service_time);
    }
  }

  void finish(Worker& worker) {
    if (worker.stream != nullptr) {
      const std::string body = "hello from replica " + manner_.name + "\n";
      const std::array<ResponseField, 2> fields = {
          ResponseField{.name = "content-type", .value = "text/plain"},
          ResponseField{.name = "x-replica", .value = manner_.name}};
      static_cast<void>(worker.stream->send_response(
          {.status = 200, .fields = fields, .content_length = {}}, body));
    }
    worker.stream = nullptr;
    worker.busy = false;
    give_out_work();
  }

  const ReplicaManner manner_;
  io::Loop& loop_;
  TimePoint started_at_{};
  std::deque<Worker> workers_;
  std::deque<ServerStream*> line_;
};

ServerConfig replica_config() {
  ServerConfig config;
  config.listen = {"127.0.0.1:0"};
  config.loops = 1;
  config.max_connections = 512;
  config.tcp_write_buffer_pool_size = 256;
  config.tcp_write_buffer_size = 4096;
  config.conn_decrypted_buf_size = 16 * 1024;
  config.arena_pool_size = 0;
  config.reserved_arenas = 0;
  config.pending_stream_pool_size = 0;
  return config;
}

}  // namespace

struct DemoReplica::Impl {
  explicit Impl(const ReplicaManner& manner)
      : server(replica_config(), [manner](const HandlerPlace& place) {
          return std::make_unique<ReplicaHandler>(manner, place.loop);
        }) {}
  Server server;
};

DemoReplica::DemoReplica(const ReplicaManner& manner) : impl_(std::make_unique<Impl>(manner)) {}

DemoReplica::~DemoReplica() {
  impl_->server.stop();
}

bool DemoReplica::start() {
  return impl_->server.start().has_value();
}

std::string DemoReplica::address() const {
  return "127.0.0.1:" + std::to_string(impl_->server.port());
}

}  // namespace weir::app
