#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/self_signed.h"

#include "io/tls_stream.h"

/// Two ends of a real TLS connection in one thread.

namespace weir::inline v0::io {

/// One signer for all tests of a program, because creating keys takes time.
inline const MadeCertificate& test_authority() {
  static const MadeCertificate made =
      make_certificate({.names = {"Weir Test CA"}, .signer_pem = {}, .authority = true});
  return made;
}
inline MadeCertificate signed_for(std::vector<std::string> names) {
  return make_certificate({.names = std::move(names), .signer_pem = test_authority().both()});
}
inline TlsIdentity identity_of(const MadeCertificate& made) {
  return {.certificate_file = {},
          .key_file = {},
          .certificate_pem = made.certificate_pem,
          .key_pem = made.key_pem};
}
inline TlsSetup server_setup() {
  static const MadeCertificate made = signed_for({"localhost"});
  TlsSetup setup;
  setup.identities.push_back(identity_of(made));
  return setup;
}
inline TlsSetup client_setup() {
  TlsSetup setup;
  setup.role = TlsRole::kClient;
  setup.ca_pem = test_authority().certificate_pem;
  return setup;
}
inline TlsContext::Ptr context_of(const TlsSetup& setup, const TlsContext* before = nullptr) {
  auto made = TlsContext::make(setup, before);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().where + ": " + made.error().why);
  return made ? *made : nullptr;
}

/// One end: a socket on a loop and its TLS stream.
struct TlsEnd final : SocketEvents {
  void on_readable() override {}
  void on_writable() override {}
  void on_disconnected() override {}
  void on_closed() { closed = true; }

  Socket socket;
  TlsStream tls;
  bool closed = false;
};

struct TlsPair {
  explicit TlsPair(int buffer_bytes = 0) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    for (const int fd : fds) {
      if (buffer_bytes == 0) continue;
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
      ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
    }
    EXPECT_TRUE(server.socket.open(loop, Fd(fds[0]), server).has_value());
    EXPECT_TRUE(client.socket.open(loop, Fd(fds[1]), client).has_value());
  }
  ~TlsPair() {
    close(server);
    close(client);
  }
  TlsPair(const TlsPair&) = delete;
  TlsPair& operator=(const TlsPair&) = delete;

  void close(TlsEnd& end) {
    end.tls.end();
    if (end.socket.is_open()) end.socket.close(Callback<>::to<&TlsEnd::on_closed>(end));
    while (!end.closed) loop.run_once();
  }

  void begin(TlsContext::Ptr at_server, TlsContext::Ptr at_client,
             const std::string& name = "localhost") {
    ASSERT_TRUE(server.tls.begin(std::move(at_server), server.socket));
    ASSERT_TRUE(client.tls.begin(std::move(at_client), client.socket, {.name = name}));
  }
  /// Runs both ends in turn until both are done or one has failed: {server, client}.
  std::pair<TlsHandshake, TlsHandshake> shake() {
    TlsHandshake s = TlsHandshake::kAgain;
    TlsHandshake c = TlsHandshake::kAgain;
    for (int i = 0; i < 5000; ++i) {
      if (c == TlsHandshake::kAgain) c = client.tls.handshake();
      if (s == TlsHandshake::kAgain) s = server.tls.handshake();
      const bool over = s != TlsHandshake::kAgain && c != TlsHandshake::kAgain;
      if (over || s == TlsHandshake::kFailed) break;
      if (c == TlsHandshake::kFailed && i > 3) break;
    }
    return {s, c};
  }
  bool connect(TlsContext::Ptr at_server, TlsContext::Ptr at_client,
               const std::string& name = "localhost") {
    begin(std::move(at_server), std::move(at_client), name);
    const auto [s, c] = shake();
    return s == TlsHandshake::kDone && c == TlsHandshake::kDone;
  }

  Loop loop;
  TlsEnd server;
  TlsEnd client;
};

inline ConstBuffer piece_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Moves `text` from one end to the other with partial reads and writes; returns what arrived.
inline std::string carry(TlsEnd& from, TlsEnd& to, std::string_view text) {
  std::string arrived;
  std::array<std::byte, 7001> buffer;
  std::size_t sent = 0;
  for (int idle = 0; arrived.size() < text.size() && idle < 100; ++idle) {
    if (sent < text.size()) {
      // From a new address each time, as if the buffer were compacted.
      const std::string moved(text.substr(sent));
      const ConstBuffer piece = piece_of(moved);
      if (const IoResult put = from.tls.write({&piece, 1}); put) {
        sent += *put;
        idle = 0;
      } else if (put.error() != IoError::kAgain) {
        break;
      }
    }
    while (const IoResult got = to.tls.read(buffer)) {
      arrived.append(reinterpret_cast<const char*>(buffer.data()), *got);
      idle = 0;
    }
  }
  return arrived;
}

}  // namespace weir::inline v0::io
