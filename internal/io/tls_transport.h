#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "io/tls_stream.h"
#include "io/transport.h"

namespace weir::inline v0::io {

/// The transport of a TLS connection. Before the handshake is done there is nothing to read.
///
/// Thread-safety: its loop's thread. Cost: that of TlsStream. Memory: OpenSSL's, freed by end().
class TlsTransport final : public Transport {
 public:
  TlsTransport() = default;
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;
  ~TlsTransport() { end(); }

  /// Of a server: creates the TLS object; `staged` are the bytes received before it. False: no
  /// memory.
  [[nodiscard]] bool begin(io::TlsContext::Ptr context, io::Socket& socket,
                           std::span<const std::byte> staged);
  /// Of a client, on a socket that is connected: call handshake() until it is done or has failed.
  /// False: no memory, or no name to verify the server by; stream().failure() tells.
  [[nodiscard]] bool begin(io::TlsContext::Ptr context, io::Socket& socket, io::TlsServer server);
  /// After kAgain: watch for interest({.read = true, .write = true}) and call it again.
  [[nodiscard]] io::TlsHandshake handshake() noexcept;
  /// Frees the TLS object; what it has not sent is lost.
  void end() noexcept;

  io::IoResult read(std::span<std::byte> into) noexcept override;
  io::IoResult write(std::span<const io::ConstBuffer> pieces) noexcept override {
    return stream_.write(pieces);
  }
  bool has_pending() const noexcept override;
  io::Socket::Interest interest(io::Socket::Interest wanted) const noexcept override {
    return stream_.interest(wanted);
  }
  void on_writable() noexcept override {
    retry_read_ = stream_.established() && stream_.read_needs_write();
  }
  void shutdown_write() noexcept override;
  void close(bool orderly) noexcept override;
  bool secure() const noexcept override { return true; }
  std::string_view peer_certificate() const noexcept override {
    return subject_ == nullptr ? std::string_view{} : std::string_view(subject_);
  }

  [[nodiscard]] const io::TlsStream& stream() const noexcept { return stream_; }

 private:
  io::TlsStream stream_;
  char* subject_ = nullptr;  // of the peer's certificate; OpenSSL's memory, within its bound
  bool retry_read_ = false;  // a read that had to write first can be repeated
  bool said_goodbye_ = false;
};

}  // namespace weir::inline v0::io
