#pragma once
#include "weir/experimental/io/socket.h"

#include "upstream/client_stream.h"
namespace weir::inline v0::upstream {
class ClientConnection;
class ConnectionPool;
class H2Wire {
 public:
  static H2Wire* make(ClientConnection&, ConnectionPool&) noexcept { return nullptr; }
  ClientStream* take_stream() noexcept { return nullptr; }
  bool empty() const noexcept { return true; }
  void shut_down() noexcept {}
  void destroy() noexcept {}
  void ping() noexcept {}
  void on_readable() noexcept {}
  void on_writable() noexcept {}
  void on_timer(TimePoint) noexcept {}
  io::Socket::Interest interest() const noexcept { return {}; }
};
}
