#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weir/experimental/io/socket.h"

namespace weir::inline v0::io {

/// How a connection's bytes reach the peer: in the clear, or through TLS.
///
/// Promises to keep: read() and write() behave as io::Socket's. has_pending() is true while bytes
/// can be read that the socket will not announce again (TLS: decrypted, or a whole record read).
/// Thread-safety: its loop's.
class Transport {
 public:
  [[nodiscard]] virtual io::IoResult read(std::span<std::byte> into) noexcept = 0;
  [[nodiscard]] virtual io::IoResult write(std::span<const io::ConstBuffer> pieces) noexcept = 0;
  [[nodiscard]] virtual bool has_pending() const noexcept = 0;
  /// What the socket must be watched for so that the transport can go on, given what the
  /// connection wants (TLS may have to write in order to read).
  [[nodiscard]] virtual io::Socket::Interest interest(
      io::Socket::Interest wanted) const noexcept = 0;
  /// The socket can be written again.
  virtual void on_writable() noexcept {}
  /// Ends our side in the way of the transport.
  virtual void shutdown_write() noexcept = 0;
  /// The connection is over. `orderly`: nothing was cut off, the peer may be told so.
  virtual void close(bool /*orderly*/) noexcept {}
  [[nodiscard]] virtual bool secure() const noexcept = 0;
  /// The subject of the peer's verified certificate; empty without one. Lives as long as this.
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
