#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weir/base/config_error.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/client/client_config.h"
#include "weir/experimental/client/client_error.h"
#include "weir/experimental/client/client_message.h"
#include "weir/policy/outgoing_state.h"

namespace weir::inline v0::inline client {

class ClientCore;

/// What a sender should know after its request was accepted.
struct QueueAdvice {
  policy::OutgoingState state = policy::OutgoingState::kHealthy;  // of the client's queue
  Duration delay{};                                               // before the next request
};

/// Numbers of a client. sent = answered + failed + in flight + queued
struct ClientStats {
  std::uint64_t sent = 0;      // accepted by send() or request()
  std::uint64_t refused = 0;   // not accepted
  std::uint64_t answered = 0;  // with a response of any status
  std::uint64_t failed = 0;
  std::uint64_t retries = 0;  // after an answer that reported overload, or for a bound of its own
  std::uint64_t hedges = 0;
  std::uint64_t hedges_won = 0;
  std::uint32_t places = 0;  // requests that it holds now
  std::uint32_t budget = 0;  // tokens left for retries and hedges
  std::uint32_t endpoints = 0;
  std::uint32_t connections = 0;
  std::uint32_t idle_connections = 0;  // of them; each endpoint keeps one if there are several
  policy::OutgoingState state = policy::OutgoingState::kHealthy;
};

/// Sends HTTP requests to the replicas of a service: HTTP/1.1, HTTP/2 and TLS, endpoints by
/// address, DNS, SRV or file, the same choice, health, retries and hedging as the gateway.
///
/// An answer that reports overload (503, 429) is followed by another attempt after U(50, 200) ms ×
/// 2^retries, not before the time that the service asks for, at most three in all, within the
/// deadline, from the redundancy budget, and only if the request may be sent twice or the refusal
/// says that it was not processed (x-weir-reason).
///
/// Promises: a request that was accepted ends exactly once, before its deadline plus one turn of
/// the loop. At most max_in_flight are under way and queue_max wait; one more is refused at once.
/// What is not idempotent is never processed twice because of the client. Holds at most
/// ClientConfig::worst_case_bytes().
/// Thread-safety: any member, any thread. A callback runs on a thread of the client: it may send()
/// and must not block, throw, call request() or get(), or close or destroy the client.
/// Cost: a lock and a wake-up to send; allocates for the response.
/// Lifetime: the destructor is close(0). No other call may be in progress then, except those that
/// wait for an answer: they get kClosed.
class Client {
 public:
  using Answer = Result<ClientResponse, ClientError>;
  using OnAnswer = std::function<void(Answer)>;

  /// Starts the threads and finds the endpoints, for which names are given three seconds. A
  /// service that cannot be reached yet is no error.
  [[nodiscard]] static Result<Client, ConfigErrors> create(const ClientConfig& config);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// Blocks until there is an answer or an error. If the client's queue is full, it waits as after
  /// an overloaded answer before it gives up.
  [[nodiscard]] Answer request(ClientRequest request);
  [[nodiscard]] Answer get(std::string path);
  /// Never blocks. If it is accepted, `on_answer` is called once; otherwise the error says which
  /// bound is reached and when to try again, and `on_answer` is not called.
  [[nodiscard]] Result<QueueAdvice, ClientError> send(ClientRequest request, OnAnswer on_answer);

  /// Accepts no more requests and gives those under way this time; what is left then ends with
  /// kClosed. Returns when all callbacks have returned: true if every request was finished.
  bool close(Duration at_most);

  [[nodiscard]] ClientStats stats() const;

 private:
  explicit Client(std::unique_ptr<ClientCore> core) noexcept;

  std::unique_ptr<ClientCore> core_;
};

}  // namespace weir::inline v0::inline client
