#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/admission_events.h"
#include "weir/experimental/io/line_writer.h"
#include "weir/experimental/server/proxy_result.h"
#include "weir/policy/outgoing_state.h"
#include "weir/policy/reason.h"

#include "policy/diagnosis.h"

namespace weir::inline v0::gateway {

/// Logs the events of admission to standard error, and counts the changes of limits.
///
/// A long overload must not fill a disk: for each scope and subject there is at most one line in
/// ten seconds, with the number of events since the last line. A limit is logged when it has
/// changed by a quarter.
/// Thread-safety: all members, any thread. Never blocks on the reader of standard error.
class OperatorLog final : public EventSink {
 public:
  /// If `writer` is nullptr, it only counts.
  OperatorLog(const std::vector<std::string>& scopes, io::LineWriter* writer);

  /// The names of the scopes from now on. Those that stay keep their counts.
  void set_scopes(const std::vector<std::string>& names);

  void say(std::string_view text) noexcept {
    if (writer_ != nullptr) static_cast<void>(writer_->write(text));
  }

  void on_limit_change(const LimitChange& change) noexcept override;
  void on_refusals(const RefusalNotice& notice) noexcept override;
  void on_class_warning(const ClassWarning& warning) noexcept override;
  void on_memory(const MemoryNotice& notice) noexcept override;

  /// Logs that every endpoint of an upstream became unavailable, or that one is available again.
  void on_upstream(std::string_view name, std::size_t endpoints, bool unavailable) noexcept;

  /// Logs that an upstream is too slow to be hedged, or is not any more.
  void on_hedging(std::string_view name, Duration median, bool too_slow) noexcept;

  /// Logs that the queue to an endpoint overflows, or that none of the upstream does any more.
  struct FullQueue {
    std::string_view upstream;
    std::string_view endpoint;
    policy::OutgoingState state = policy::OutgoingState::kOverflow;
  };
  void on_queue(const FullQueue& queue) noexcept;
  void on_queues_fine(std::string_view name) noexcept;

  /// Logs that the diagnosis of an upstream has changed, and what it rests on. Allocates: not for
  /// the loops of clients.
  void on_verdict(std::string_view name, policy::Cause cause, std::string_view evidence);

  /// Logs that the last request of a removed upstream has finished.
  void on_upstream_gone(std::string_view name) noexcept;

  /// Logs that connections were closed because of their PROXY header.
  void on_proxy_refusal(const ProxyRefusal& refusal) noexcept;

  struct Moves {
    std::uint64_t up = 0;
    std::uint64_t down = 0;
  };
  /// How often the limit of a scope went up and down.
  [[nodiscard]] Moves moves(std::string_view scope) const noexcept;

  static constexpr Duration kPace = std::chrono::seconds(10);
  /// Whether to log a limit: it differs by a quarter from the last one logged.
  [[nodiscard]] static bool worth_telling(std::uint32_t told, std::uint32_t now) noexcept;

 private:
  /// True at most once in kPace.
  class Pace {
   public:
    [[nodiscard]] bool lets_through(TimePoint now) noexcept;

   private:
    std::atomic<std::int64_t> next_ns_{0};
  };
  struct Scope {
    std::string name;
    std::atomic<std::uint64_t> up{0};
    std::atomic<std::uint64_t> down{0};
    std::atomic<std::uint32_t> told{0};  // the limit last logged
    Pace limit_pace;
    Pace warning_pace;
    std::array<Pace, kReasonCount> refusal_paces;
    std::array<std::atomic<std::uint64_t>, kReasonCount> refused{};  // since the last line
  };
  /// Events of one kind that have no scope.
  struct Kind {
    Pace pace;
    std::atomic<std::uint64_t> count{0};  // since the last line
  };
  /// The one of that name; one without a name for those that are not known.
  [[nodiscard]] std::shared_ptr<Scope> scope_of(std::string_view name) const noexcept;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Scope>> scopes_;  // under mutex_
  const std::shared_ptr<Scope> unknown_ = std::make_shared<Scope>();
  std::array<Kind, static_cast<std::size_t>(ProxyResult::kCount)> proxy_refusals_;
  io::LineWriter* writer_;
};

}  // namespace weir::inline v0::gateway
