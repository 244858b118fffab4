#pragma once

#include <cstdint>
#include <utility>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/control/admission_request.h"
#include "weir/policy/reason.h"

namespace weir::inline v0::inline control {

class AdmissionController;

/// One admitted request: holds its units of the limit, the count of its actor and peer, and its
/// bytes until finish() or destruction.
///
/// Promises: in every case (finished, destroyed, the handler threw, the rules changed meanwhile)
/// exactly what was taken is given back, once. A destroyed permit records no sample; one that is
/// destroyed by an exception counts as Outcome::kError.
/// Thread-safety: one owner at a time, on any thread. Cost: 48 bytes; no allocation.
/// Lifetime: the controller must outlive it (it asserts that).
class [[nodiscard]] Permit {
 public:
  Permit() noexcept = default;
  Permit(Permit&& other) noexcept : taken_(std::exchange(other.taken_, Taken{})) {}
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      reset();
      taken_ = std::exchange(other.taken_, Taken{});
    }
    return *this;
  }
  ~Permit() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return taken_.owner != nullptr; }

  /// Gives everything back and records one latency sample, from grant to `now`. After
  /// to_streaming() it records none, because the sample was taken there.
  void finish(Outcome outcome, TimePoint now) && noexcept;

  /// Call it when the response headers are sent. It takes the latency sample and moves the units
  /// from the limit to streams_max, so that a long body does not occupy the limit. The actor's
  /// count and the bytes stay held. False: streams_max is reached, and the units stay in the limit.
  /// A second call changes nothing.
  bool to_streaming(TimePoint now) noexcept;

  /// Its units are in streams_max, and not in the limit.
  [[nodiscard]] bool streaming() const noexcept { return taken_.stream_units > 0; }

  /// The service has done all of its work, but the response still waits for its client: records the
  /// outcome and gives every unit back, as finish() does. The actor's count and the bytes stay held
  /// until finish(), whose outcome is then without effect. A second call changes nothing.
  void end_service(Outcome outcome, TimePoint now) noexcept;
  [[nodiscard]] bool served() const noexcept { return taken_.served; }

  /// The request cannot use the service now (no replica is there): gives its units back, so that it
  /// does not occupy the limit. The actor's count and the bytes stay held. Not while streaming.
  void give_units_back(TimePoint now) noexcept;
  /// Takes them again, before requests in the waiting room. False: half of the limit, or of the
  /// share of the class, is in use; the other half is left to new requests.
  [[nodiscard]] bool try_take_units() noexcept;
  [[nodiscard]] bool has_units() const noexcept { return !taken_.units_returned; }

  /// The latency sample begins at `start` instead of at the grant, if that is later: what passed
  /// before (the client sent its body) is not the time of the service.
  void start_sample_at(TimePoint start) noexcept {
    if (start > taken_.granted_at) taken_.granted_at = start;
  }
  /// The time of this request says nothing about the service: no latency sample is taken. An
  /// outcome of overload still counts.
  void skip_sample() noexcept { taken_.unsampled = true; }

  /// Charges more bytes, all or nothing. An error means that a budget is full (kActorBytes, kBytes)
  /// and the request should end; it is counted as a refusal for that reason.
  [[nodiscard]] Result<void, Reason> try_grow(std::uint64_t bytes) noexcept;
  void shrink(std::uint64_t bytes) noexcept;

  /// Which endpoint serves the request: overload that only one of several reports does not shrink
  /// the limit. Call it before finish() and to_streaming(); any number names an endpoint.
  void set_endpoint(std::uint32_t endpoint) noexcept { taken_.endpoint = source_of(endpoint); }

  [[nodiscard]] Priority priority() const noexcept { return taken_.priority; }
  [[nodiscard]] ScopeId scope() const noexcept { return taken_.scope; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return taken_.bytes; }
  [[nodiscard]] TimePoint granted_at() const noexcept { return taken_.granted_at; }

 private:
  friend class AdmissionController;
  friend class Ticket;

  static constexpr std::uint32_t kNoEntry = ~std::uint32_t{0};

  /// What to give back. It is recorded here, so a change of rules cannot make the counts wrong.
  struct Taken {
    AdmissionController* owner = nullptr;
    TimePoint granted_at{};
    std::uint64_t bytes = 0;
    std::uint32_t actor_entry = kNoEntry;
    std::uint32_t peer_entry = kNoEntry;
    ScopeId scope = ScopeId::kFirst;
    std::uint16_t units = 0;         // in the scope's class word, unless units_returned
    std::uint16_t global_units = 0;  // in the process-wide count
    std::uint16_t stream_units = 0;  // in the streaming count
    Priority priority = Priority::kNormal;
    std::uint8_t route = 0;  // where the answer comes from, for the limiter; 0: not known
    std::uint8_t endpoint = 0;
    bool sampled : 1 = false;
    bool served : 1 = false;          // by end_service(); only the actor's count and bytes are held
    bool unsampled : 1 = false;       // by skip_sample()
    bool units_returned : 1 = false;  // by give_units_back(); `units` is what to take again
    bool total_bytes = false;         // the process-wide budget holds `bytes` too
    bool critical_overflow = false;   // counted outside the class word
    RuleOverrides modes{};            // of the request
  };

  /// A bucket of the sources of outcomes, 1 to 255.
  [[nodiscard]] static std::uint8_t source_of(std::uint32_t number) noexcept {
    return static_cast<std::uint8_t>(number % 255U + 1U);
  }
  explicit Permit(const Taken& taken) noexcept : taken_(taken) {}
  void reset() noexcept;
  void drop_holdings() noexcept;
  void refuse_holdings() noexcept;  // the same, for a request that is refused

  Taken taken_;
};

}  // namespace weir::inline v0::inline control
