#pragma once

// The model that the interleaving test compares with the controller: it counts what is certainly
// held. It adds after taking and subtracts before giving back, so it never exceeds the controller's
// count, and a model above a bound proves that the bound was broken.

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"

namespace weir::inline v0::inline control {

inline constexpr std::size_t kActors = 6;
inline constexpr std::size_t kPeers = 3;
inline constexpr std::size_t kScopes = 2;

/// The rules that the model knows.
inline AdmissionConfig fixed_rules() {
  AdmissionConfig config = plain_config(10);
  config.limit.initial_limit = 6;
  config.scopes_max = kScopes;
  config.inflight_max = 4;
  config.per_peer_limit = 7;
  config.bytes_max = 150;
  config.total_bytes_max = 500;
  config.streams_max = 5;
  config.waiting_max = 6;
  config.classes.caps[index_of(Priority::kLow)] = 3;
  config.classes.share_normal_permille = 900;
  config.classes.share_low_permille = 750;
  return config;
}

/// A count that must not exceed its bound while bounds are fixed.
class Held {
 public:
  void add(std::int64_t units, std::int64_t bound, std::atomic<int>& broken) noexcept {
    if (units_.fetch_add(units) + units > bound) broken.fetch_add(1);
  }
  void sub(std::int64_t units) noexcept { units_.fetch_sub(units); }
  [[nodiscard]] bool zero() const noexcept { return units_.load() == 0; }

 private:
  std::atomic<std::int64_t> units_{0};
};

struct Facts {
  std::size_t scope = 0;
  Priority priority = Priority::kNormal;
  std::size_t actor = kActors;  // kActors: none
  std::size_t peer = kPeers;
  std::int64_t bytes = 0;
  std::int64_t units = 0;
  bool streams = false;
};

struct Model {
  std::array<Held, kScopes> in_flight;
  std::array<Held, kScopes> low;
  Held process;
  std::array<Held, kActors> actor_count;
  std::array<Held, kActors> actor_bytes;
  std::array<Held, kPeers> peer_count;
  Held bytes;
  Held streaming;
  std::atomic<int> broken{0};
  std::atomic<bool> bounds_are_fixed{true};

  void check(Held& held, std::int64_t units, std::int64_t bound) noexcept {
    held.add(units, bounds_are_fixed.load() ? bound : 1'000'000, broken);
  }
  void take_bytes(const Facts& f, std::int64_t amount) noexcept {
    check(bytes, amount, 500);
    if (f.actor < kActors) check(actor_bytes[f.actor], amount, 150);
  }
  void give_bytes(const Facts& f, std::int64_t amount) noexcept {
    bytes.sub(amount);
    if (f.actor < kActors) actor_bytes[f.actor].sub(amount);
  }
  void take_holdings(const Facts& f) noexcept {
    if (f.actor < kActors) check(actor_count[f.actor], 1, 4);
    if (f.peer < kPeers) check(peer_count[f.peer], 1, 7);
    take_bytes(f, f.bytes);
  }
  void give_holdings(const Facts& f) noexcept {
    if (f.actor < kActors) actor_count[f.actor].sub(1);
    if (f.peer < kPeers) peer_count[f.peer].sub(1);
    give_bytes(f, f.bytes);
  }
  void take_units(const Facts& f) noexcept {
    if (f.priority == Priority::kCritical) return;
    check(in_flight[f.scope], f.units, 6);
    check(process, f.units, 10);
    if (f.priority == Priority::kLow) check(low[f.scope], f.units, 3);
  }
  void give_units(const Facts& f) noexcept {
    if (f.priority == Priority::kCritical) return;
    in_flight[f.scope].sub(f.units);
    process.sub(f.units);
    if (f.priority == Priority::kLow) low[f.scope].sub(f.units);
  }
  [[nodiscard]] bool zero() const noexcept {
    bool all = process.zero() && bytes.zero() && streaming.zero();
    for (const auto& h : in_flight) all = all && h.zero();
    for (const auto& h : low) all = all && h.zero();
    for (const auto& h : actor_count) all = all && h.zero();
    for (const auto& h : actor_bytes) all = all && h.zero();
    for (const auto& h : peer_count) all = all && h.zero();
    return all;
  }
};

}  // namespace weir::inline v0::inline control
