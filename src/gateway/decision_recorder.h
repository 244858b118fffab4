#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/rng.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/control/admission_request.h"

#include "control/decision_ring.h"
#include "policy/recorded_decision.h"
#include "policy/recording.h"

namespace weir::inline v0::gateway {

struct GatewayCore;

/// The newest decisions of all loops, in memory of a fixed size: why was this request refused, and
/// what came before.
///
/// Promises: no name, path or address is kept; request ids, actors and peers are hashes with a key
/// that never leaves the process. A loop that records never waits.
/// Thread-safety: put() by the loop's thread; everything else from any.
/// Cost: put() about 20 ns, the hash of a request id 12 ns; reading copies up to kBytes.
class DecisionRecorder {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20U;  // of all loops

  struct Start {
    TimePoint at;  // the same instant twice
    std::int64_t unix_us = 0;
  };
  DecisionRecorder(std::uint32_t loops, Rng seed, const Start& start);

  void put(std::uint32_t loop, const policy::RecordedDecision& decision) noexcept {
    rings_[loop]->put(policy::pack(decision));
  }
  [[nodiscard]] Duration since_start(TimePoint at) const noexcept { return at - start_.at; }
  [[nodiscard]] std::int64_t started_unix_us() const noexcept { return start_.unix_us; }
  [[nodiscard]] std::uint32_t tag_of_request(std::string_view id) const noexcept;
  [[nodiscard]] static std::uint32_t actor_tag(const Identity& actor) noexcept;
  [[nodiscard]] static std::uint16_t peer_tag(const Identity& peer) noexcept;

  /// The newest decision about a request with that id, or with a name that tag_name() gave.
  [[nodiscard]] std::optional<policy::RecordedDecision> find(std::string_view id) const;
  /// The newest refused ones, of one scope or of all, newest first: for the live view.
  [[nodiscard]] std::vector<policy::RecordedDecision> newest_refusals(
      std::size_t count, std::optional<ScopeId> scope = std::nullopt) const;
  /// Everything that is kept, by loop.
  [[nodiscard]] std::vector<policy::DecisionWords> all() const;

  /// Since when every decision is kept: the loop that overwrote the newest one decides. 0 is the
  /// start.
  [[nodiscard]] Duration complete_since() const;

  /// What was recorded since the last call with these positions; `lost` counts what was overwritten
  /// before. The positions are empty at first.
  void copy_new(std::vector<std::uint64_t>& positions, std::vector<policy::DecisionWords>& out,
                std::uint64_t& lost) const;

  [[nodiscard]] std::uint64_t recorded() const noexcept;  // since the start

 private:
  const Start start_;
  const SipKey key_;
  std::vector<std::unique_ptr<control::DecisionRing>> rings_;
};

/// The header of a recording of this gateway.
[[nodiscard]] policy::RecordingHeader recording_header(const GatewayCore& core,
                                                       std::uint64_t capacity);
/// "app"; empty for a request without an upstream, or of one that is gone.
[[nodiscard]] std::string upstream_of(const policy::RecordedDecision& decision,
                                      const GatewayCore& core);
/// "~1a2b3c4d": names a decision whose request id is not kept; /explain?id= takes it.
[[nodiscard]] std::string tag_name(const policy::RecordedDecision& decision);
/// "overload"; "admitted".
[[nodiscard]] std::string_view reason_of(const policy::RecordedDecision& decision) noexcept;

}  // namespace weir::inline v0::gateway
