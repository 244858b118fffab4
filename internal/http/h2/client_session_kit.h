#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"

#include "http/h2/client_session.h"
#include "http/h2/session_ptr.h"

struct nghttp2_session_callbacks;
struct nghttp2_option;

namespace weir::inline v0::http::h2 {

/// Bounds that only a client has.
struct ClientOptions {
  static constexpr std::uint32_t kInformationalCap = 200;  // counted in one byte

  std::uint32_t informational_max = 8;             // 1xx heads before one final head
  std::uint32_t streams_before_settings_max = 10;  // until the server's SETTINGS arrive
};

using ClientSessionPtr = std::unique_ptr<ClientSession, DestroyInPlace>;

/// Data shared by all client sessions of one program, created once at start.
///
/// Thread-safety: make() from any thread. Lifetime: must outlive its sessions.
class ClientSessionKit {
 public:
  explicit ClientSessionKit(const H2Limits& limits, const ClientOptions& options = {});
  ClientSessionKit(const ClientSessionKit&) = delete;
  ClientSessionKit& operator=(const ClientSessionKit&) = delete;
  ~ClientSessionKit();

  /// Creates a client session inside `memory`: limits().session_bytes_max bytes, aligned to 16. The
  /// preface and its SETTINGS are queued. nullptr if the memory is too small.
  [[nodiscard]] ClientSessionPtr make(std::span<std::byte> memory, ClientEvents& events,
                                      TimePoint now) const;

  [[nodiscard]] const H2Limits& limits() const noexcept { return limits_; }

 private:
  H2Limits limits_;
  ClientOptions options_;
  nghttp2_session_callbacks* callbacks_ = nullptr;
  nghttp2_option* option_ = nullptr;
};

}  // namespace weir::inline v0::http::h2
