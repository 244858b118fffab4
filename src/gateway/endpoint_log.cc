#include "endpoint_log.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "weir/experimental/io/clock.h"

namespace weir::inline v0::gateway {
namespace {

struct Printed {
  int size;
  const char* text;
};
Printed shortened(std::string_view text, std::size_t max = 80) noexcept {
  return {static_cast<int>(std::min(text.size(), max)), text.data()};
}

}  // namespace

// One word holds the second and its count: a compare-exchange per line, no lock.
bool EndpointLog::lets_through(TimePoint now) noexcept {
  constexpr unsigned kCountBits = 16;
  constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
  const auto second = static_cast<std::uint64_t>(to_ns(now)) / 1'000'000'000;
  std::uint64_t seen = window_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t lines = seen >> kCountBits == second ? seen & kCountMask : 0;
    if (lines >= kLinesPerSecond) return false;
    if (window_.compare_exchange_weak(seen, second << kCountBits | (lines + 1),
                                      std::memory_order_relaxed)) {
      return true;
    }
  }
}

template <class... Args>
void EndpointLog::say(const char* format, Args... args) noexcept {
  if (!lets_through(io::monotonic_now())) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::array<char, 480> line;
  const auto written = [&](int size) {
    const auto whole = static_cast<std::size_t>(std::max(size, 0));
    return std::string_view(line.data(), std::min(line.size() - 1, whole));
  };
  if (const std::uint64_t missing = left_out_.exchange(0, std::memory_order_relaxed)) {
    log_.say(
        written(std::snprintf(line.data(), line.size(), "weir: endpoint_lines_left_out count=%llu",
                              static_cast<unsigned long long>(missing))));
  }
  log_.say(written(std::snprintf(line.data(), line.size(), format, args...)));
}

void EndpointLog::on_endpoint_change(std::string_view upstream, const upstream::Endpoint& endpoint,
                                     const policy::HealthChange& change) {
  const Printed name = shortened(upstream);
  const Printed label = shortened(endpoint.label());
  const Printed from = shortened(name_of(change.from));
  const Printed to = shortened(name_of(change.to));
  const Printed reason = shortened(name_of(change.reason));
  say("weir: endpoint_state upstream=%.*s endpoint=%.*s from=%.*s to=%.*s reason=%.*s", name.size,
      name.text, label.size, label.text, from.size, from.text, to.size, to.text, reason.size,
      reason.text);
}

void EndpointLog::on_set_change(std::string_view upstream, std::size_t added, std::size_t removed,
                                std::size_t endpoints) {
  const Printed name = shortened(upstream);
  say("weir: endpoint_set upstream=%.*s added=%zu removed=%zu endpoints=%zu", name.size, name.text,
      added, removed, endpoints);
}

void EndpointLog::on_tls_failure(std::string_view upstream, const upstream::Endpoint& endpoint,
                                 std::string_view why) {
  const Printed name = shortened(upstream);
  const Printed label = shortened(endpoint.label());
  const Printed text = shortened(why, 240);
  say("weir: endpoint_tls_failed upstream=%.*s endpoint=%.*s reason=\"%.*s\"", name.size, name.text,
      label.size, label.text, text.size, text.text);
}

void EndpointLog::on_source(std::string_view upstream, std::string_view source,
                            std::string_view error) {
  const Printed name = shortened(upstream);
  const Printed from = shortened(source, 120);
  const Printed text = shortened(error, 200);
  if (error.empty()) {
    say("weir: endpoint_source_ok upstream=%.*s source=%.*s", name.size, name.text, from.size,
        from.text);
  } else {
    say("weir: endpoint_source_failed upstream=%.*s source=%.*s reason=\"%.*s\"; no endpoint was "
        "removed",
        name.size, name.text, from.size, from.text, text.size, text.text);
  }
}

}  // namespace weir::inline v0::gateway
