#include "node.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "weir/base/ip_range.h"
#include "weir/control/admission_controller.h"
#include "weir/embed/clock.h"
#include "weir/experimental/grpc/server_builder.h"
#include "weir/experimental/io/memory_reader.h"

#include "coordinator.h"
#include "node_service.h"
#include "rebuild.h"

namespace {

using std::chrono::milliseconds;
using valuestore::NodeOptions;
using valuestore::NodeService;

/// Everything of a node, in the order in which it is made; it ends in the opposite order.
class Node {
 public:
  Node(NodeOptions options, std::unique_ptr<valuestore::Storage> storage)
      : options_(std::move(options)),
        storage_(std::move(storage)),
        admission_(admission_config(options_), weir::Rng(weir::embed::random_seed())) {}

  /// What went wrong; empty: it serves.
  [[nodiscard]] std::string start() {
    if (options_.rebuild) {
      std::string error = rebuild(options_, peers_, writer_);
      if (!error.empty()) return error;
    }
    std::unique_ptr<grpc::ServerBuilder> builder = make_builder();
    builder->AddListeningPort(options_.addresses[options_.self], grpc::InsecureServerCredentials());
    builder->RegisterService(&service_);
    server_ = builder->BuildAndStart();
    if (server_ == nullptr) return options_.addresses[options_.self] + ": cannot listen";
    watch_ = std::thread([this] { watch(); });
    return {};
  }

  /// Ends in order: writes first, then hints, then reads.
  void drain() {
    service_.drain();
    pause(milliseconds(600));  // until the others have seen it
    for (int i = 0; i < 100 && storage_->hint_count() != 0; ++i) pause(milliseconds(50));
    if (gate_) gate_->close();
    server_->Shutdown(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(2, GPR_TIMESPAN)));
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    watch_.join();
    remote_.stop();
  }

 private:
  static weir::AdmissionConfig admission_config(const NodeOptions& options) {
    weir::AdmissionConfig config;
    config.max_concurrent = options.max_concurrent;
    config.limit.initial_limit = options.initial_limit;
    return config;
  }

  std::unique_ptr<grpc::ServerBuilder> make_builder() {
    if (!options_.admission) return std::make_unique<grpc::ServerBuilder>();
    weir::grpc::ServerOptions server;
    server.methods = NodeService::methods();
    // Here the nodes are processes of one machine. Elsewhere: the names in their certificates.
    server.trust.addresses.push_back(*weir::parse_ip_range("127.0.0.0/8"));
    auto builder = std::make_unique<weir::grpc::ServerBuilder>(admission_, std::move(server));
    gate_ = builder->admission();
    return builder;
  }

  /// What admission is told from outside: memory, and a store that takes no writes.
  void watch() {
    weir::io::MemoryReader memory;
    std::unique_lock lock(mutex_);
    while (!stop_) {
      const weir::io::MemoryReading reading = memory.read(weir::embed::now(), 0.8);
      admission_.set_memory(reading.usage, reading.readable);
      admission_.set_queues_overflow(weir::ScopeId::kFirst, storage_->is_write_stopped());
      wake_.wait_for(lock, milliseconds(500), [this] { return stop_; });
    }
  }

  void pause(weir::Duration time) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, time, [this] { return stop_; });
  }

  void add_admission(NodeService::Numbers& numbers) {
    const weir::TimePoint now = weir::embed::now();
    const weir::ScopeStats scope = admission_.scope_stats(weir::ScopeId::kFirst, now);
    numbers["limit"] = scope.limit;
    numbers["in_flight"] = scope.in_flight;
    numbers["overloaded"] = scope.overloaded ? 1 : 0;
    for (std::size_t i = 0; i < scope.classes.size(); ++i) {
      const std::string name(name_of(static_cast<weir::Priority>(i)));
      numbers["admitted_" + name] = scope.classes[i].acquired;
      numbers["refused_" + name] = scope.classes[i].shed;
    }
  }

  const NodeOptions options_;
  std::unique_ptr<valuestore::Storage> storage_;
  weir::AdmissionController admission_;
  const valuestore::Placement placement_{options_.names};
  valuestore::WriterThread writer_{*storage_};
  valuestore::ValueCache cache_{options_.cache_mb << 20U};
  valuestore::LocalReader reader_{*storage_, options_.readers, milliseconds(options_.read_ms)};
  valuestore::Peers peers_{options_};
  valuestore::RemoteFetch remote_{
      options_,
      [this] { return admission_.is_overloaded(weir::ScopeId::kFirst, weir::embed::now()); }};
  valuestore::HintDelivery hints_{
      {},
      placement_,
      options_.self,
      *storage_,
      writer_,
      [this](const valuestore::Parcel& parcel, std::function<void(bool)> done) {
        peers_.send(parcel, done);
      },
      [this](std::size_t node) { return peers_.state().takes_writes(node); },
      [this](const valuestore::ValueKey& key, std::size_t not_from) {
        valuestore::fetch_again(key, not_from, options_, placement_, peers_, writer_);
      }};
  const valuestore::Coordinator::Parts parts_{options_, placement_, *storage_, reader_, writer_,
                                              cache_,   peers_,     remote_,   hints_};
  valuestore::Coordinator coordinator_{parts_};
  NodeService service_{parts_, coordinator_,
                       [this](NodeService::Numbers& numbers) { add_admission(numbers); }};
  std::optional<weir::grpc::Admission> gate_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread watch_;
};

}  // namespace

namespace valuestore {

int run_node(const std::vector<std::string>& arguments, const NodeHooks& hooks) {
  // Before any thread is made: all of them leave these signals to sigwait().
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (hooks.on_usr1) sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto options = NodeOptions::parse(arguments);
  if (!options) {
    std::fprintf(stderr, "valuestore_node: %s\n", options.error().c_str());
    return 2;
  }
  valuestore::StorageConfig config;
  config.path = options->data;
  config.nodes = options->names;
  config.hints_max = options->hints_max;
  config.env = hooks.env;
  auto storage = valuestore::Storage::open(config);
  if (!storage) {
    std::fprintf(stderr, "valuestore_node: %s\n", storage.error().c_str());
    return 1;
  }
  Node node(*std::move(options), *std::move(storage));
  const std::string error = node.start();
  if (!error.empty()) {
    std::fprintf(stderr, "valuestore_node: %s\n", error.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  if (signal == SIGUSR1) hooks.on_usr1();
  node.drain();
  return 0;
}

}  // namespace valuestore
