#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/rng.h"

namespace weir::inline v0::http {

/// What Sec-WebSocket-Accept must be for a Sec-WebSocket-Key (RFC 6455 §4.2.2): base64 of the SHA-1
/// of the key and a fixed text. It shows that a server has understood the request; it is no secret.
class WebSocketAccept {
 public:
  static constexpr std::size_t kBytes = 28;
  /// `key` has at most 64 characters.
  explicit WebSocketAccept(std::string_view key) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), kBytes}; }

 private:
  std::array<char, kBytes> text_{};
};

/// A Sec-WebSocket-Key: 16 bytes in base64, drawn anew for each connection.
class WebSocketKey {
 public:
  static constexpr std::size_t kBytes = 24;
  WebSocketKey() noexcept = default;  // empty
  [[nodiscard]] static WebSocketKey draw(Rng& rng) noexcept;

  [[nodiscard]] bool empty() const noexcept { return text_[0] == '\0'; }
  [[nodiscard]] std::string_view view() const noexcept {
    return empty() ? std::string_view{} : std::string_view(text_.data(), kBytes);
  }
  /// Whether a server that sent this value has read our key.
  [[nodiscard]] bool accepts(std::string_view value) const noexcept {
    return value == WebSocketAccept(view()).view();
  }

 private:
  std::array<char, kBytes> text_{};
};

}  // namespace weir::inline v0::http
