// Compares two ways to pass received bytes to OpenSSL:
//   direct  OpenSSL reads the socket itself into its record buffer (as TlsStream does)
//   region  the owner reads the socket into a region of its own and OpenSSL copies from there
// and measures the cost of a handshake. CPU time, both ends in one thread; the sending end is the
// same in both, so the difference is the receiving end's.

#include <array>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/self_signed.h"

#include "io/tls_stream.h"

namespace weir::inline v0::io {
namespace {

struct End final : SocketEvents {
  void on_readable() override {}
  void on_writable() override {}
  void on_disconnected() override {}
  void on_closed() { closed = true; }
  Socket socket;
  TlsStream tls;
  bool closed = false;
};

/// A TCP connection over loopback, because a socketpair has other costs.
struct Pair {
  Pair() {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    bool ok = ::bind(listener.get(), any, size) == 0 && ::listen(listener.get(), 1) == 0 &&
              ::getsockname(listener.get(), any, &size) == 0;
    Fd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ok = ok && ::connect(out.get(), any, size) == 0;
    Fd in(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ok = ok && ::fcntl(out.get(), F_SETFL, O_NONBLOCK) == 0;
    ready = ok && server.socket.open(loop, std::move(in), server).has_value() &&
            client.socket.open(loop, std::move(out), client).has_value();
  }
  ~Pair() {
    for (End* end : {&server, &client}) {
      end->tls.end();
      end->socket.close(Callback<>::to<&End::on_closed>(*end));
    }
    while (!server.closed || !client.closed) loop.run_once();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool connect(const TlsContext::Ptr& at_server, const TlsContext::Ptr& at_client,
               SSL_SESSION* session = nullptr) {
    if (!server.tls.begin(at_server, server.socket) ||
        !client.tls.begin(at_client, client.socket, {.name = "localhost"}))
      return false;
    if (session != nullptr) SSL_set_session(client.tls.native(), session);
    TlsHandshake s = TlsHandshake::kAgain;
    TlsHandshake c = TlsHandshake::kAgain;
    for (int i = 0; i < 1000 && (s == TlsHandshake::kAgain || c == TlsHandshake::kAgain); ++i) {
      if (c == TlsHandshake::kAgain) c = client.tls.handshake();
      if (s == TlsHandshake::kAgain) s = server.tls.handshake();
    }
    return s == TlsHandshake::kDone && c == TlsHandshake::kDone;
  }

  Loop loop;
  End server;
  End client;
  bool ready = false;
};

const MadeCertificate& certificate() {
  static const MadeCertificate made = make_certificate({.names = {"localhost"}, .signer_pem = {}});
  return made;
}
TlsContext::Ptr server_context() {
  TlsSetup setup;
  setup.identities.push_back({.certificate_file = {},
                              .key_file = {},
                              .certificate_pem = certificate().certificate_pem,
                              .key_pem = certificate().key_pem});
  return *TlsContext::make(setup);
}
TlsContext::Ptr client_context() {
  TlsSetup setup;
  setup.role = TlsRole::kClient;
  setup.ca_pem = certificate().certificate_pem;
  return *TlsContext::make(setup);
}

enum class Feed { kDirect, kRegion };

/// Reads until `wanted` bytes have arrived or the socket is empty.
template <Feed kFeed>
std::size_t receive(End& end, std::span<std::byte> region, std::span<std::byte> plain,
                    std::size_t wanted) {
  std::size_t total = 0;
  while (total < wanted) {
    if constexpr (kFeed == Feed::kRegion) {
      if (end.tls.staged_left() == 0) {
        const IoResult got = end.socket.read(region);
        if (!got) return total;
        end.tls.stage(region.first(*got));
      }
    }
    const IoResult got = end.tls.read(plain);
    if (got) {
      total += *got;
    } else if (kFeed == Feed::kDirect || end.tls.staged_left() == 0) {
      return total;
    }
  }
  return total;
}

template <Feed kFeed>
void receive_messages(benchmark::State& state) {
  Pair pair;
  if (!pair.ready || !pair.connect(server_context(), client_context())) {
    state.SkipWithError("no connection");
    return;
  }
  const std::string message(static_cast<std::size_t>(state.range(0)), 'x');
  std::array<std::byte, 32 * 1024> region;
  std::array<std::byte, 32 * 1024> plain;
  const ConstBuffer piece{reinterpret_cast<const std::byte*>(message.data()), message.size()};
  for (auto _ : state) {
    std::size_t sent = 0;
    std::size_t got = 0;
    while (got < message.size()) {
      if (sent < message.size()) {
        const ConstBuffer rest{piece.data + sent, piece.size - sent};
        if (const IoResult put = pair.client.tls.write({&rest, 1}); put) sent += *put;
      }
      got += receive<kFeed>(pair.server, region, plain, message.size() - got);
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void tls_receive_direct(benchmark::State& state) {
  receive_messages<Feed::kDirect>(state);
}
void tls_receive_region(benchmark::State& state) {
  receive_messages<Feed::kRegion>(state);
}
BENCHMARK(tls_receive_direct)->Arg(200)->Arg(16 * 1024)->Arg(1024 * 1024);
BENCHMARK(tls_receive_region)->Arg(200)->Arg(16 * 1024)->Arg(1024 * 1024);

void tls_handshake(benchmark::State& state) {
  const TlsContext::Ptr server = server_context();
  const TlsContext::Ptr client = client_context();
  for (auto _ : state) {
    Pair pair;
    if (!pair.connect(server, client)) state.SkipWithError("no connection");
  }
}
BENCHMARK(tls_handshake)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weir::inline v0::io
