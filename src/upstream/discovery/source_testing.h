#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/io/loop.h"
#include "weir/experimental/upstream/source_config.h"

#include "io/dns_server_testing.h"
#include "upstream/discovery/make_source.h"

namespace weir::inline v0::upstream {

/// Records what a source publishes.
struct RecordingSink final : EndpointSink {
  void on_endpoints(const EndpointSource& /*from*/, std::vector<DiscoveredEndpoint> all) override {
    ++lists;
    last = std::move(all);
  }
  void on_source_error(const EndpointSource& /*from*/, const std::string& text) override {
    errors.push_back(text);
  }
  /// "10.0.0.1:80 [::1]:80*5 " with weights other than 1.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const DiscoveredEndpoint& one : last) {
      out += one.address.to_string();
      if (one.weight != 1) out += '*' + std::to_string(one.weight);
      if (!one.zone.empty()) out += '@' + one.zone;
      if (one.draining) out += '!';
      out += ' ';
    }
    return out;
  }

  int lists = 0;
  std::vector<DiscoveredEndpoint> last;
  std::vector<std::string> errors;
};

/// The rules of discovery, some hundred times as fast.
inline policy::DiscoveryTimes fast_times() {
  using std::chrono::milliseconds;
  return {.ttl_min = milliseconds(2),
          .ttl_max = milliseconds(10),
          .empty_again = milliseconds(5),
          .empty_span_min = milliseconds(10),
          .failed_again_max = milliseconds(10)};
}

/// Runs the loop until `reached`; a test that waits for what never happens fails after a minute.
inline void run_until(io::Loop& loop, const RecordingSink& sink,
                      const std::function<bool()>& reached) {
  const TimePoint end = loop.refresh_now() + std::chrono::minutes(1);
  while (!reached()) {
    ASSERT_LT(loop.refresh_now(), end) << "last list: " << sink.text();
    loop.run_once(true);
  }
}

/// A source on a loop, with a DNS server of its own.
struct SourceRun {
  explicit SourceRun(const std::string& text, policy::DiscoveryTimes times = fast_times(),
                     Duration dns_timeout = std::chrono::seconds(10))
      : resolver(loop, config(server, dns_timeout)) {
    const auto spec = parse_source(text);
    EXPECT_TRUE(spec) << text;
    source = make_source(*spec, resolver, {.rng = Rng(1), .times = times});
  }

  static io::DnsConfig config(const io::TestDnsServer& server, Duration timeout) {
    io::DnsConfig made;
    made.servers = {server.address()};
    made.timeout = timeout;
    made.tries = 1;
    made.routed_only = false;  // tests use addresses of nobody
    return made;
  }
  void start() { source->start(loop, sink); }
  void until(const std::function<bool()>& reached) { run_until(loop, sink, reached); }
  void until_text(const std::string& wanted) {
    until([&] { return sink.lists > 0 && sink.text() == wanted; });
  }
  /// Runs until the name was asked for `more` times again: what was set before is known by then.
  void lookups(const std::string& name, io::DnsType type, std::size_t more = 3) {
    const std::size_t wanted = server.queries(name, type) + more;
    until([&] { return server.queries(name, type) >= wanted; });
  }

  io::TestDnsServer server;
  io::Loop loop;
  io::DnsResolver resolver;
  RecordingSink sink;
  std::unique_ptr<EndpointSource> source;
};

}  // namespace weir::inline v0::upstream
