// A read of replicated data over gRPC: three replicas, of which one answers a tenth of its calls
// 150 ms late. The same reads are sent to the replicas in turn, then to the better one, and then
// with hedging. Prints latencies and how many calls the replicas got.
//
//   grpc_client [READS]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "weir/embed/clock.h"
#include "weir/embed/thread_parker.h"
#include "weir/experimental/grpc/hedged_channel.h"

#include "examples/grpc_client.grpc.pb.h"

namespace {

using std::chrono::milliseconds;
using weir::example::Lookup;
using weir::example::LookupReply;
using weir::example::LookupRequest;

constexpr int kClients = 8;

class Replica final : public Lookup::Service {
 public:
  explicit Replica(bool sometimes_slow) : sometimes_slow_(sometimes_slow) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  [[nodiscard]] std::string target() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int calls() const { return calls_.load(); }

  grpc::Status Get(grpc::ServerContext* /*context*/, const LookupRequest* request,
                   LookupReply* reply) override {
    const int number = ++calls_;
    const bool slow = sometimes_slow_ && number % 10 == 0;
    weir::embed::ThreadParker work;
    work.park_until(weir::embed::now() + milliseconds(slow ? 150 : 1));
    reply->set_value("value of " + request->key());
    return grpc::Status::OK;
  }

 private:
  const bool sometimes_slow_;
  std::atomic<int> calls_{0};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// [guide]
weir::grpc::HedgedChannelConfig config_for(const std::vector<std::string>& targets) {
  weir::grpc::HedgedChannelConfig config;
  for (const std::string& target : targets) config.replicas.push_back({.target = target});
  // Reads may be hedged. A method that is not listed is a write: it never is.
  config.methods = {{.path = "/weir.example.Lookup/Get"}};
  return config;
}

grpc::Status read(weir::grpc::HedgedChannel& channel, const std::string& key, LookupReply& reply) {
  LookupRequest request;
  request.set_key(key);
  return channel.call("/weir.example.Lookup/Get", request, reply, {.timeout = milliseconds(2000)});
}
// [/guide]

enum class How { kInTurn, kBetterOne, kHedged };

struct Row {
  double p50_ms = 0;
  double p99_ms = 0;
  double p999_ms = 0;
  double more_percent = 0;  // calls that the replicas got, above one per read
  int failed = 0;
  int hedges = 0;
  std::uint64_t hedges_won = 0;
};

double at(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(last * share)];
}

std::vector<double> read_all(weir::grpc::HedgedChannel& channel,
                             const std::vector<std::string>& in_turn, int reads,
                             std::atomic<int>& failed) {
  std::vector<double> latencies(static_cast<std::size_t>(reads));
  std::atomic<int> next{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      for (int i = next++; i < reads; i = next++) {
        const auto number = static_cast<std::size_t>(i);
        const weir::TimePoint begin = weir::embed::now();
        LookupReply reply;
        LookupRequest request;
        request.set_key(std::to_string(i));
        weir::grpc::HedgedCallOptions options;
        if (!in_turn.empty()) options.among = {in_turn[number % in_turn.size()]};
        const bool ok = channel.call("/weir.example.Lookup/Get", request, reply, options).ok();
        if (!ok) ++failed;
        latencies[number] = weir::to_millis(weir::embed::now() - begin);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

bool measure(How how, int reads, Row& row) {
  Replica slow(true);
  Replica second(false);
  Replica third(false);
  const std::vector<std::string> targets = {slow.target(), second.target(), third.target()};
  weir::grpc::HedgedChannelConfig config = config_for(targets);
  config.hedge.enabled = how == How::kHedged;
  auto channel = weir::grpc::HedgedChannel::create(config);
  if (!channel || !channel->wait_connected(targets.size(), std::chrono::seconds(10))) return false;
  LookupReply first;
  if (!read(*channel, "first", first).ok() || first.value() != "value of first") return false;
  std::atomic<int> failed{0};
  const std::vector<double> all =
      read_all(*channel, how == How::kInTurn ? targets : std::vector<std::string>{}, reads, failed);
  const int calls = slow.calls() + second.calls() + third.calls() - 1;
  const weir::grpc::HedgedStats stats = channel->stats();
  row = {.p50_ms = at(all, 0.5),
         .p99_ms = at(all, 0.99),
         .p999_ms = at(all, 0.999),
         .more_percent = 100.0 * (calls - reads) / reads,
         .failed = failed.load(),
         .hedges = calls - reads,
         .hedges_won = stats.hedges_won};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int reads = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 2000;
  if (reads < 100) {
    std::fprintf(stderr, "READS: 100 or more\n");
    return 2;
  }
  Row rows[3];
  const char* const names[] = {"in turn", "better one", "hedged"};
  std::printf("%-12s %8s %8s %8s %8s %7s\n", "", "p50 ms", "p99 ms", "p99.9 ms", "more", "failed");
  for (int i = 0; i < 3; ++i) {
    if (!measure(static_cast<How>(i), reads, rows[i])) {
      std::fprintf(stderr, "the replicas could not be reached\n");
      return 1;
    }
    std::printf("%-12s %8.2f %8.2f %8.2f %7.1f%% %7d\n", names[i], rows[i].p50_ms, rows[i].p99_ms,
                rows[i].p999_ms, rows[i].more_percent, rows[i].failed);
  }
  // Judged by counts: on a busy machine times say little.
  const Row& hedged = rows[2];
  const bool ok = hedged.failed == 0 && hedged.hedges_won > 0 && rows[0].hedges == 0 &&
                  hedged.hedges <= reads / 10 + 100;
  std::printf("%s\n", ok ? "reads were hedged" : "hedging did not help");
  return ok ? 0 : 1;
}
