#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "weir/base/time.h"

#include "operator_log.h"
#include "upstream/upstream.h"

namespace weir::inline v0::gateway {

/// Logs what happens to endpoints: one line per change of a state, of a set, of a source, and per
/// TLS failure, with keys that scripts can read:
///
///   weir: endpoint_state upstream=app endpoint=10.0.0.1:80 from=available to=ejected
///   reason=connect_failed
///
/// Promises: at most kLinesPerSecond lines in a second; then one line with the number of those that
/// were left out.
/// Thread-safety: all members, any thread. Never blocks on the reader of standard error.
class EndpointLog final : public upstream::UpstreamObserver {
 public:
  static constexpr std::uint32_t kLinesPerSecond = 20;

  explicit EndpointLog(OperatorLog& log) noexcept : log_(log) {}

  void on_endpoint_change(std::string_view upstream, const upstream::Endpoint& endpoint,
                          const policy::HealthChange& change) override;
  void on_set_change(std::string_view upstream, std::size_t added, std::size_t removed,
                     std::size_t endpoints) override;
  void on_tls_failure(std::string_view upstream, const upstream::Endpoint& endpoint,
                      std::string_view why) override;
  /// A source failed, or works again if `error` is empty.
  void on_source(std::string_view upstream, std::string_view source, std::string_view error);

 private:
  template <class... Args>
  void say(const char* format, Args... args) noexcept;
  [[nodiscard]] bool lets_through(TimePoint now) noexcept;

  OperatorLog& log_;
  std::atomic<std::uint64_t> window_{0};  // second, and lines in it
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace weir::inline v0::gateway
