#include "weir/experimental/client/client.h"

#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/thread_parker.h"

#include "client_core.h"
#include "client_shape.h"
#include "io/tls_context.h"

namespace weir::inline v0::inline client {
namespace {

/// Where a thread waits for its answer. Shared with the callback, which may still wake the thread
/// when the thread has gone on.
struct Waiting {
  io::ThreadParker parker;
  std::optional<Client::Answer> answer;

  [[nodiscard]] Client::Answer wait() {
    // The request has a deadline, and close() ends it earlier.
    while (!done_.load(std::memory_order_acquire)) {
      parker.park_until(io::monotonic_now() + std::chrono::hours(1));
    }
    return std::move(*answer);
  }
  void set(Client::Answer given) {
    answer.emplace(std::move(given));
    done_.store(true, std::memory_order_release);
    parker.unpark();
  }

 private:
  std::atomic<bool> done_{false};
};

Result<io::TlsContext::Ptr, ConfigError> tls_of(const upstream::UpstreamConfig& upstream) {
  if (!upstream.tls_enabled) return io::TlsContext::Ptr();
  const auto made = io::TlsContext::make(io::TlsSetup::client(
      upstream.tls, {.http1 = upstream.protocol != upstream::Protocol::kHttp2,
                     .http2 = upstream.protocol != upstream::Protocol::kHttp1}));
  if (made) return *made;
  const io::TlsSetupError& error = made.error();
  return unexpected(
      ConfigError{.key = "tls", .value = error.where + ": " + error.why, .allowed = error.wanted});
}

}  // namespace

Client::Client(std::unique_ptr<ClientCore> core) noexcept : core_(std::move(core)) {}
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept = default;
Client::~Client() = default;

Result<Client, ConfigErrors> Client::create(const ClientConfig& config) {
  if (ConfigErrors errors = config.validate(); !errors.empty()) return unexpected(errors);
  const auto upstream = upstream_of(config);
  const auto tls = tls_of(*upstream);
  if (!tls) return unexpected(ConfigErrors{tls.error()});
  auto core = std::make_unique<ClientCore>(
      ClientCore::Setup{.config = config, .upstream = *upstream, .tls = *tls});
  core->build();
  return Client(std::move(core));
}

Result<QueueAdvice, ClientError> Client::send(ClientRequest request, OnAnswer on_answer) {
  return core_->send(request, on_answer);
}

Client::Answer Client::get(std::string path) {
  ClientRequest wanted;
  wanted.path = std::move(path);
  return request(std::move(wanted));
}

Client::Answer Client::request(ClientRequest request) {
  WEIR_ASSERT(!core_->in_own_thread());
  const auto waiting = std::make_shared<Waiting>();
  OnAnswer on_answer = [waiting](Answer answer) { waiting->set(std::move(answer)); };
  TimePoint now = io::monotonic_now();
  request.deadline = core_->deadline_of(request, now);
  for (std::uint32_t retries = 0;; ++retries) {
    const auto sent = core_->send(request, on_answer);
    if (sent) return waiting->wait();
    if (sent.error().kind != ClientErrorKind::kQueueFull) return unexpected(sent.error());
    const std::optional<Duration> wait =
        core_->wait_after(sent.error(), retries, request.deadline - now);
    if (!wait) return unexpected(sent.error());
    now = waiting->parker.park_until(now + *wait);
  }
}

bool Client::close(Duration at_most) {
  return core_->close(at_most);
}

ClientStats Client::stats() const {
  return core_->stats();
}

}  // namespace weir::inline v0::inline client
