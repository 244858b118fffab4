// A read of replicated data: cache, local store, then a hedged fetch from the nodes that own the
// key, and the cache is filled.
//
//   replicated_get [--keys N] [--slow-ms N] [--hedge 0|1]
//
// Three nodes run in this program, on loopback ports of their own; each has every value. Which node
// is asked for a key is decided by consistent hashing, so each node's own cache would be used well.
// The first node is slow. Every key is read twice; then a table shows where values came from.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/experimental/client/client.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/server.h"

namespace {

using std::chrono::milliseconds;
using weir::ServerRequest;
using weir::ServerStream;
using weir::io::monotonic_now;
using weir::io::Timer;

struct NodeCounts {
  std::atomic<std::uint32_t> asked{0};
  std::atomic<std::uint32_t> answered{0};
  std::atomic<std::uint32_t> aborted{0};  // the client had its answer from another node
};

/// Answers GET /values/KEY with "value of KEY" after a delay.
class ValueHandler final : public weir::Handler {
 public:
  ValueHandler(NodeCounts& counts, weir::Duration delay) : counts_(counts), delay_(delay) {}

  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    ++counts_.asked;
    auto& state = stream.make_state<State>();
    const std::string_view key = request.meta.path.substr(request.meta.path.rfind('/') + 1);
    state.key_bytes = key.copy(state.key.data(), state.key.size());
    Timer* timer = new (state.timer.data()) Timer(Timer::Fired(
        [](void* at, weir::TimePoint) { answer(*static_cast<ServerStream*>(at)); }, &stream));
    stream.loop().arm(*timer, delay_);
  }
  void on_writable(ServerStream& stream) override { answer(stream); }
  void on_finished(ServerStream& stream) override {
    ++counts_.answered;
    forget(stream);
  }
  void on_abort(ServerStream& stream, weir::CloseReason) override {
    ++counts_.aborted;
    forget(stream);
  }

 private:
  struct State {
    alignas(Timer) std::array<std::byte, sizeof(Timer)> timer;
    std::array<char, 32> key;
    std::size_t key_bytes;
  };
  static void answer(ServerStream& stream) {
    const State& state = stream.state<State>();
    const std::string value = "value of " + std::string(state.key.data(), state.key_bytes);
    static_cast<void>(stream.send_response({.status = 200, .fields = {}, .content_length = {}},
                                           value));  // kBlocked: on_writable() follows
  }
  static void forget(ServerStream& stream) {
    Timer* timer = std::launder(reinterpret_cast<Timer*>(stream.state<State>().timer.data()));
    stream.loop().cancel(*timer);
    timer->~Timer();
  }

  NodeCounts& counts_;
  weir::Duration delay_;
};

/// A node of the cluster.
class Node {
 public:
  explicit Node(weir::Duration delay)
      : server_(config(), [this, delay](const weir::HandlerPlace&) {
          return std::make_unique<ValueHandler>(counts, delay);
        }) {}
  [[nodiscard]] bool start() { return server_.start().has_value(); }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_.port());
  }

  NodeCounts counts;

 private:
  static weir::ServerConfig config() {
    weir::ServerConfig config;
    config.listen = {"127.0.0.1:0"};
    config.loops = 1;
    config.max_connections = 64;
    config.tcp_write_buffer_pool_size = 64;
    config.arena_pool_size = 0;
    config.reserved_arenas = 0;
    return config;
  }
  weir::Server server_;
};

// [replicated get]
/// kHedged: the owner was late, and the first answer of two was used.
enum class From { kCache, kLocalStore, kOwner, kHedged };

/// Reads values that the nodes of a cluster hold.
class ReplicatedGet {
 public:
  struct Found {
    std::string value;
    From from = From::kCache;
  };
  ReplicatedGet(weir::Client client, std::map<std::string, std::string> local)
      : client_(std::move(client)), local_(std::move(local)) {}

  weir::Result<Found, weir::ClientError> get(const std::string& key) {
    if (const auto cached = cache_.find(key); cached != cache_.end()) {
      return Found{cached->second, From::kCache};
    }
    if (const auto stored = local_.find(key); stored != local_.end()) {
      cache_[key] = stored->second;
      return Found{stored->second, From::kLocalStore};
    }
    // The owner on the ring is asked; if it is late, the next one on the ring as well.
    auto fetched = client_.request({.path = "/values/" + key, .hash_key = key});
    if (!fetched) return weir::unexpected(fetched.error());
    cache_[key] = fetched->body;
    return Found{fetched->body, fetched->hedged ? From::kHedged : From::kOwner};
  }
  [[nodiscard]] weir::ClientStats stats() const { return client_.stats(); }

 private:
  weir::Client client_;
  std::map<std::string, std::string> local_;
  std::map<std::string, std::string> cache_;
};
// [end]

struct Options {
  std::uint32_t keys = 300;
  std::uint32_t slow_ms = 100;
  std::uint32_t hedge = 1;
};

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const std::string_view text = argv[i + 1];
    std::uint32_t* value = key == "--keys"      ? &options.keys
                           : key == "--slow-ms" ? &options.slow_ms
                           : key == "--hedge"   ? &options.hedge
                                                : nullptr;
    if (value == nullptr) return false;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return false;
  }
  return argc % 2 == 1;
}

weir::Result<weir::Client, weir::ConfigErrors> client_of(const std::array<Node, 3>& nodes,
                                                         const Options& options) {
  weir::ClientConfig config;
  for (const Node& node : nodes) config.endpoints.push_back(node.address());
  config.balance = weir::Balance::kHash;
  config.hedge.enabled = options.hedge != 0;
  return weir::Client::create(config);
}

void print_table(std::array<std::vector<double>, 4>& times, const std::array<Node, 3>& nodes) {
  constexpr std::array<const char*, 4> kNames = {"cache", "local", "owner", "hedged"};
  std::printf("%-10s %7s %9s %9s\n", "from", "reads", "p50 ms", "p99 ms");
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    const auto at = [&](double part) {
      if (times[i].empty()) return 0.0;
      return times[i][static_cast<std::size_t>(part * static_cast<double>(times[i].size() - 1))];
    };
    std::printf("%-10s %7zu %9.3f %9.3f\n", kNames[i], times[i].size(), at(0.5), at(0.99));
  }
  std::printf("%-10s %7s %9s %9s\n", "node", "asked", "answered", "aborted");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeCounts& counts = nodes[i].counts;
    std::printf("%-10s %7u %9u %9u\n",
                i == 0   ? "slow"
                : i == 1 ? "second"
                         : "third",
                counts.asked.load(), counts.answered.load(), counts.aborted.load());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fputs("replicated_get [--keys N] [--slow-ms N] [--hedge 0|1]\n", stderr);
    return 2;
  }
  std::array<Node, 3> nodes{Node(milliseconds(options.slow_ms)), Node(milliseconds(1)),
                            Node(milliseconds(1))};
  for (Node& node : nodes) {
    if (!node.start()) return 1;
  }
  auto client = client_of(nodes, options);
  if (!client) return 1;
  std::array<std::vector<double>, 4> times;
  weir::ClientStats stats;
  {
    ReplicatedGet reads(std::move(*client), {{"key-0", "value of key-0"}});
    for (std::uint32_t i = 0; i < 2 * options.keys; ++i) {
      const std::string key = "key-" + std::to_string(i % options.keys);
      const weir::TimePoint before = monotonic_now();
      const auto found = reads.get(key);
      const std::chrono::duration<double, std::milli> took = monotonic_now() - before;
      if (!found || found->value != "value of " + key) {
        std::fprintf(stderr, "%s: %s\n", key.c_str(),
                     found ? "a wrong value" : std::string(found.error().text()).c_str());
        return 1;
      }
      times[static_cast<std::size_t>(found->from)].push_back(took.count());
    }
    stats = reads.stats();
  }
  print_table(times, nodes);
  std::printf("hedges %llu won %llu\n", static_cast<unsigned long long>(stats.hedges),
              static_cast<unsigned long long>(stats.hedges_won));
  return 0;
}
