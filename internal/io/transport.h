#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {

/// How a connection's bytes reach the peer: in cleartext or through TLS.
///
/// An implementation must promise: read() and write() behave as io::Socket's. has_pending() is true
/// while bytes can be read for which the socket reports no further event (TLS: decrypted bytes, or
/// a whole record that was read).
/// Thread-safety: its loop's thread.
class Transport {
 public:
  [[nodiscard]] virtual io::IoResult read(std::span<std::byte> into) noexcept = 0;
  [[nodiscard]] virtual io::IoResult write(std::span<const io::ConstBuffer> pieces) noexcept = 0;
  [[nodiscard]] virtual bool has_pending() const noexcept = 0;
  /// The socket events that the transport needs for what the connection wants (TLS may have to
  /// write in order to read).
  [[nodiscard]] virtual io::Socket::Interest interest(
      io::Socket::Interest wanted) const noexcept = 0;
  /// The socket is writable again.
  virtual void on_writable() noexcept {}
  /// Ends the sending side; TLS sends close_notify first.
  virtual void shutdown_write() noexcept = 0;
  /// The connection has ended. `orderly`: nothing was cut off; TLS then sends close_notify.
  virtual void close(bool /*orderly*/) noexcept {}
  [[nodiscard]] virtual bool secure() const noexcept = 0;
  /// The subject of the peer's verified certificate; empty without one. Valid as long as this
  /// object.
  [[nodiscard]] virtual std::string_view peer_certificate() const noexcept { return {}; }

 protected:
  ~Transport() = default;
};

/// The socket itself.
class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(io::Socket& socket) noexcept : socket_(socket) {}

  io::IoResult read(std::span<std::byte> into) noexcept override { return socket_.read(into); }
  io::IoResult write(std::span<const io::ConstBuffer> pieces) noexcept override {
    return socket_.write(pieces);
  }
  bool has_pending() const noexcept override { return false; }
  io::Socket::Interest interest(io::Socket::Interest wanted) const noexcept override {
    return wanted;
  }
  void shutdown_write() noexcept override { socket_.shutdown_write(); }
  bool secure() const noexcept override { return false; }

 private:
  io::Socket& socket_;
};

}  // namespace weir::inline v0::io
