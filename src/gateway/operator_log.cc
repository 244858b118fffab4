#include "operator_log.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "weir/experimental/io/clock.h"

#include "trust.h"

namespace weir::inline v0::gateway {
namespace {

/// Formats in a fixed buffer: events arrive on threads that must not allocate.
template <class... Args>
void say_to(OperatorLog& log, const char* format, Args... args) noexcept {
  std::array<char, 320> line;
  const int size = std::snprintf(line.data(), line.size(), format, args...);
  log.say({line.data(), std::min(line.size() - 1, static_cast<std::size_t>(std::max(size, 0)))});
}

int width(std::string_view text) noexcept {
  return static_cast<int>(std::min<std::size_t>(text.size(), 80));
}

}  // namespace

OperatorLog::OperatorLog(const std::vector<std::string>& scopes, io::LineWriter* writer)
    : writer_(writer) {
  set_scopes(scopes);
}

void OperatorLog::set_scopes(const std::vector<std::string>& names) {
  const std::scoped_lock lock(mutex_);
  const std::vector<std::shared_ptr<Scope>> before = std::exchange(scopes_, {});
  for (const std::string& name : names) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const auto& scope) { return scope->name == name; });
    scopes_.push_back(known != before.end() ? *known : std::make_shared<Scope>());
    scopes_.back()->name = name;
  }
}

std::shared_ptr<OperatorLog::Scope> OperatorLog::scope_of(std::string_view name) const noexcept {
  const std::scoped_lock lock(mutex_);
  const auto known = std::find_if(scopes_.begin(), scopes_.end(),
                                  [&](const auto& scope) { return scope->name == name; });
  return known != scopes_.end() ? *known : unknown_;
}

bool OperatorLog::Pace::lets_through(TimePoint now) noexcept {
  std::int64_t next = next_ns_.load(std::memory_order_relaxed);
  return to_ns(now) >= next &&
         next_ns_.compare_exchange_strong(next, to_ns(now + kPace), std::memory_order_relaxed);
}

bool OperatorLog::worth_telling(std::uint32_t told, std::uint32_t now) noexcept {
  const std::uint32_t more = std::max(told, now);
  const std::uint32_t less = std::min(told, now);
  return (more - less) * 4 >= more && more != less;
}

void OperatorLog::on_limit_change(const LimitChange& change) noexcept {
  const std::shared_ptr<Scope> known = scope_of(change.scope);
  Scope& scope = *known;
  auto& moved = change.new_limit > change.old_limit ? scope.up : scope.down;
  moved.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t told = scope.told.load(std::memory_order_relaxed);
  if (told == 0) {
    told = change.old_limit;
    scope.told.store(told, std::memory_order_relaxed);
  }
  if (!worth_telling(told, change.new_limit)) return;
  if (!scope.limit_pace.lets_through(io::monotonic_now())) return;
  scope.told.store(change.new_limit, std::memory_order_relaxed);
  const std::string_view reason = name_of(change.reason);
  say_to(*this,
         "weir: %.*s: limit %u, was %u (%.*s; %u in flight, estimated queue %.1f, latency "
         "%.1f ms, without queue %.1f ms)",
         width(change.scope), change.scope.data(), change.new_limit, told, width(reason),
         reason.data(), change.in_flight, change.queue_estimate, to_millis(change.latency_avg),
         to_millis(change.latency_min));
}

void OperatorLog::on_refusals(const RefusalNotice& notice) noexcept {
  const std::shared_ptr<Scope> known = scope_of(notice.scope);
  Scope& scope = *known;
  const std::size_t at = v0::index_of(notice.reason);
  scope.refused[at].fetch_add(notice.count, std::memory_order_relaxed);
  if (!scope.refusal_paces[at].lets_through(io::monotonic_now())) return;
  const std::uint64_t count = scope.refused[at].exchange(0, std::memory_order_relaxed);
  const std::string_view reason = name_of(notice.reason);
  const std::string_view priority = name_of(notice.priority);
  const std::string_view peer = notice.peer.empty() ? "none" : notice.peer;
  say_to(*this,
         "weir: %.*s: refused %llu (%.*s): %u in flight, limit %u, estimated queue %.1f, "
         "memory %.1f %%; last: class %.*s, peer %.*s",
         width(notice.scope), notice.scope.data(), static_cast<unsigned long long>(count),
         width(reason), reason.data(), notice.in_flight, notice.limit, notice.queue_estimate,
         notice.memory_usage * 100, width(priority), priority.data(), width(peer), peer.data());
}

void OperatorLog::on_class_warning(const ClassWarning& warning) noexcept {
  const std::shared_ptr<Scope> known = scope_of(warning.scope);
  Scope& scope = *known;
  if (!scope.warning_pace.lets_through(io::monotonic_now())) return;
  const std::string_view priority = name_of(warning.priority);
  say_to(*this, "weir: %.*s: %.*s has %u of its %u places", width(warning.scope),
         warning.scope.data(), width(priority), priority.data(), warning.in_flight, warning.bound);
}

void OperatorLog::on_memory(const MemoryNotice& notice) noexcept {
  if (!notice.readable) {
    say("weir: memory usage cannot be read: it counts as 0 %, memory protection does nothing");
    return;
  }
  constexpr std::array<const char*, 3> kMeanings = {"no request is refused for it",
                                                    "low-class requests are refused",
                                                    "normal and low-class requests are refused"};
  say_to(*this, "weir: memory %.1f %% used: %s", notice.usage * 100,
         kMeanings[static_cast<std::size_t>(notice.level)]);
}

void OperatorLog::on_proxy_refusal(const ProxyRefusal& refusal) noexcept {
  Kind& kind = proxy_refusals_[static_cast<std::size_t>(refusal.result)];
  kind.count.fetch_add(1, std::memory_order_relaxed);
  if (!kind.pace.lets_through(io::monotonic_now())) return;
  const auto count =
      static_cast<unsigned long long>(kind.count.exchange(0, std::memory_order_relaxed));
  const auto ip = ip_of(refusal.sender);
  const IpText sender = ip ? text_of(*ip) : IpText();
  const std::string_view from = ip ? sender.view() : "a Unix socket";
  if (refusal.result == ProxyResult::kUntrusted) {
    say_to(*this,
           "weir: closed %llu connections to listen.proxy_protocol, the last from %.*s, which is "
           "not in trust.proxies",
           count, width(from), from.data());
    return;
  }
  const std::string_view result = name_of(refusal.result);
  say_to(*this,
         "weir: closed %llu connections to listen.proxy_protocol: PROXY header %.*s; the last from "
         "%.*s (%.*s)",
         count, width(result), result.data(), width(from), from.data(), width(refusal.why),
         refusal.why.data());
}

void OperatorLog::on_upstream(std::string_view name, std::size_t endpoints,
                              bool unavailable) noexcept {
  if (unavailable) {
    say_to(*this,
           "weir: upstream %.*s: no endpoint is available (0 of %zu); /endpoints of the admin "
           "endpoint says why",
           width(name), name.data(), endpoints);
  } else {
    say_to(*this, "weir: upstream %.*s: an endpoint answers again", width(name), name.data());
  }
}

void OperatorLog::on_hedging(std::string_view name, Duration median, bool too_slow) noexcept {
  const double ms = to_seconds(median) * 1000;
  if (too_slow) {
    say_to(*this,
           "weir: upstream %.*s: reads that usually take %.1f ms are not hedged; raise "
           "hedge.max_delay_ms above that to hedge them",
           width(name), name.data(), ms);
  } else {
    say_to(*this, "weir: upstream %.*s: the usual answer takes %.1f ms; reads are hedged again",
           width(name), name.data(), ms);
  }
}

void OperatorLog::on_queue(const FullQueue& queue) noexcept {
  const std::string_view how = name_of(queue.state);
  say_to(*this,
         "weir: upstream %.*s: the queue to %.*s is full (%.*s): it takes fewer connections than "
         "requests come; /endpoints of the admin endpoint says how many wait",
         width(queue.upstream), queue.upstream.data(), width(queue.endpoint), queue.endpoint.data(),
         width(how), how.data());
}

void OperatorLog::on_queues_fine(std::string_view name) noexcept {
  say_to(*this, "weir: upstream %.*s: no queue to an endpoint is full any more", width(name),
         name.data());
}

void OperatorLog::on_verdict(std::string_view name, policy::Cause cause,
                             std::string_view evidence) {
  const policy::CauseFacts& facts = policy::facts_of(cause);
  std::string line = "weir: " + std::string(name) + ": " + std::string(facts.name) + ": " +
                     std::string(facts.sentence) + " (" + std::string(evidence) + ")";
  if (cause != policy::Cause::kFine) line += "; " + std::string(facts.next_step);
  say(line);
}

void OperatorLog::on_upstream_gone(std::string_view name) noexcept {
  say_to(*this, "weir: upstream %.*s: gone; its requests have finished", width(name), name.data());
}

OperatorLog::Moves OperatorLog::moves(std::string_view scope) const noexcept {
  const std::shared_ptr<Scope> known = scope_of(scope);
  return {.up = known->up.load(std::memory_order_relaxed),
          .down = known->down.load(std::memory_order_relaxed)};
}

}  // namespace weir::inline v0::gateway
