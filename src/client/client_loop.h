#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/rng.h"
#include "weir/experimental/io/loop.h"
#include "weir/policy/priority.h"

#include "client_call.h"
#include "upstream/dispatcher.h"

namespace weir::inline v0::inline client {

class ClientCore;

/// One loop's part of a client: its dispatcher, its requests, and which of them may begin.
///
/// Order: critical requests begin at once and count in no bound; the others by class, then by age,
/// while fewer than `in_flight_max` are under way.
/// Thread-safety: its loop's thread. Lifetime: close() and stopped() before destruction.
class ClientLoop {
 public:
  struct Setup {
    ClientCore& core;
    io::Loop& loop;
    std::uint32_t index = 0;
    std::uint32_t in_flight_max = 1;
    Rng rng;
  };
  explicit ClientLoop(const Setup& setup);
  ClientLoop(const ClientLoop&) = delete;
  ClientLoop& operator=(const ClientLoop&) = delete;

  /// Ends every request with kClosed, and closes the connections.
  void close();
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  [[nodiscard]] bool stopped() const noexcept { return dispatcher_.stopped(); }

  // For requests.
  [[nodiscard]] io::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return dispatcher_.loop_index(); }
  [[nodiscard]] upstream::Dispatcher& dispatcher() noexcept { return dispatcher_; }
  [[nodiscard]] Rng& rng() noexcept { return rng_; }
  [[nodiscard]] std::string_view authority() const noexcept;
  [[nodiscard]] std::size_t response_body_max() const noexcept;
  [[nodiscard]] Duration advice() const;
  void note_answer(bool overloaded) noexcept;
  void note_retry() noexcept;
  void add_queued(ClientCall& call) noexcept;
  void add_backing_off(ClientCall& call) noexcept;
  /// From its list; one that was under way leaves room for another.
  void remove(ClientCall& call) noexcept;
  /// Gives its place back and destroys it.
  void release(ClientCall& call, bool answered);

 private:
  using Calls = IntrusiveList<ClientCall, &ClientCall::hook>;

  void pump();
  [[nodiscard]] Calls* next_queue() noexcept;
  void cancel_all(Calls& calls);

  ClientCore& core_;
  io::Loop& loop_;
  const std::uint32_t in_flight_max_;
  Rng rng_;
  upstream::Dispatcher dispatcher_;
  std::array<Calls, kPriorityCount> queued_;
  Calls under_way_;
  Calls backing_off_;
  io::Task pump_;
  std::uint32_t in_flight_ = 0;  // without critical ones
  bool closing_ = false;
};

}  // namespace weir::inline v0::inline client
