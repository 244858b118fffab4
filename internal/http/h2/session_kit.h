#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "weir/base/time.h"
#include "weir/experimental/http/h2_config.h"

#include "http/h2/session.h"
#include "http/h2/session_ptr.h"

struct nghttp2_session_callbacks;
struct nghttp2_option;

namespace weir::inline v0::http::h2 {

using SessionPtr = std::unique_ptr<Session, DestroyInPlace>;

/// Data shared by all sessions of one server, created once at start.
///
/// Thread-safety: make() from any thread. Lifetime: must outlive its sessions.
class SessionKit {
 public:
  explicit SessionKit(const H2Limits& limits);
  SessionKit(const SessionKit&) = delete;
  SessionKit& operator=(const SessionKit&) = delete;
  ~SessionKit();

  /// Creates a server session inside `memory`: limits().session_bytes_max bytes, aligned to 16. Its
  /// SETTINGS are queued. nullptr if the memory is too small.
  [[nodiscard]] SessionPtr make(std::span<std::byte> memory, SessionEvents& events,
                                TimePoint now) const;

  [[nodiscard]] const H2Limits& limits() const noexcept { return limits_; }

 private:
  H2Limits limits_;
  nghttp2_session_callbacks* callbacks_ = nullptr;
  nghttp2_option* option_ = nullptr;
};

}  // namespace weir::inline v0::http::h2
