#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/tls_transport.h"
#include "tls_testing.h"

/// A client against a TLS server that is not Weir's: `openssl s_server`, over TCP.

namespace weir::inline v0::io {
namespace {

class OpensslServer {
 public:
  explicit OpensslServer(const std::vector<std::string>& more) {
    std::string pattern = testing::TempDir() + "weir_s_server_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ + "/own.pem") << signed_for({"localhost", "127.0.0.1"}).both();
    std::ofstream(folder_ + "/ca.pem") << test_authority().certificate_pem;
    std::vector<std::string> words = {
        "openssl", "s_server",          "-accept", "127.0.0.1:0", "-cert", folder_ + "/own.pem",
        "-CAfile", folder_ + "/ca.pem", "-www"};
    words.insert(words.end(), more.begin(), more.end());
    start(words);
  }
  ~OpensslServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  OpensslServer(const OpensslServer&) = delete;
  OpensslServer& operator=(const OpensslServer&) = delete;

  [[nodiscard]] SocketName name() const { return *parse_socket_name(address_); }

 private:
  void start(std::vector<std::string>& words) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, STDIN_FILENO);
      ::dup2(null, STDERR_FILENO);
      ::execvp("openssl", arguments.data());
      ::_exit(127);
    }
    ::close(pipe[1]);
    output_ = Fd(pipe[0]);
    std::string said;
    char one = 0;
    while (address_.empty() && ::read(output_.get(), &one, 1) == 1) {
      if (one != '\n') {
        said += one;
      } else if (const std::string line = std::exchange(said, {}); line.starts_with("ACCEPT ")) {
        address_ = line.substr(7);
      }
    }
    ASSERT_FALSE(address_.empty()) << "openssl s_server did not start";
  }

  std::string folder_;
  std::string address_;
  Fd output_;
  int child_ = -1;
};

/// One connection of a client to it.
struct Connection final : SocketEvents {
  Connection(const OpensslServer& server, const TlsContext::Ptr& context, TlsServer expected) {
    auto fd = connect_to(server.name(), {});
    EXPECT_TRUE(fd.has_value());
    EXPECT_TRUE(socket.open(loop, *std::move(fd), *this).has_value());
    wait({.read = false, .write = true});
    EXPECT_TRUE(socket.connected().has_value());
    EXPECT_TRUE(transport.begin(context, socket, expected));
    while ((result = transport.handshake()) == TlsHandshake::kAgain) {
      wait(transport.interest({.read = true, .write = true}));
    }
  }
  ~Connection() {
    transport.close(true);
    socket.close(Callback<>::to<&Connection::on_closed>(*this));
    while (!closed) loop.run_once(true);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void on_readable() override { ready = true; }
  void on_writable() override { ready = true; }
  void on_disconnected() override { ready = true; }
  void on_closed() { closed = true; }
  void wait(Socket::Interest interest) {
    socket.watch(interest);
    for (ready = false; !ready;) loop.run_once(true);
    socket.watch({});
  }
  /// Sends a request; returns what comes before the end, or the name of the error.
  std::string get() {
    const ConstBuffer request = piece_of("GET / HTTP/1.0\r\n\r\n");
    static_cast<void>(transport.write({&request, 1}));  // if it fails, so does reading
    std::string all;
    std::array<std::byte, 4096> into{};
    while (true) {
      const IoResult got = transport.read(into);
      if (got) {
        all.append(reinterpret_cast<const char*>(into.data()), *got);
      } else if (got.error() == IoError::kAgain) {
        if (!transport.has_pending()) wait(transport.interest({.read = true, .write = false}));
      } else {
        return got.error() == IoError::kEof ? all : std::string(name_of(got.error()));
      }
    }
  }

  Loop loop;
  Socket socket;
  TlsTransport transport;
  TlsHandshake result = TlsHandshake::kAgain;
  bool ready = false;
  bool closed = false;
};

TlsContext::Ptr client_of(TlsSetup::Offer offer = {}) {
  TlsClientConfig config;
  config.ca_pem = test_authority().certificate_pem;
  return context_of(TlsSetup::client(config, offer));
}

TEST(TlsOpenssl, ServesAndResumes) {
  for (const char* version : {"-tls1_2", "-tls1_3"}) {
    const OpensslServer server({version});
    const TlsContext::Ptr client = client_of();
    TlsSessions sessions;
    for (const bool resumed : {false, true, true}) {
      Connection to(server, client, {.name = "localhost", .sessions = &sessions});
      ASSERT_EQ(to.result, TlsHandshake::kDone) << to.transport.stream().failure();
      EXPECT_EQ(to.transport.stream().resumed(), resumed) << version;
      EXPECT_TRUE(to.get().starts_with("HTTP/1.0 200 ok")) << version;
    }
    Connection by_address(server, client, {.name = "127.0.0.1", .sessions = &sessions});
    EXPECT_EQ(by_address.result, TlsHandshake::kDone);
    EXPECT_FALSE(by_address.transport.stream().resumed());
  }
}

TEST(TlsOpenssl, AgreesOnAProtocol) {
  const OpensslServer both({"-alpn", "h2,http/1.1"});
  Connection first(both, client_of(), {.name = "localhost"});
  EXPECT_EQ(first.transport.stream().protocol(), TlsProtocol::kHttp2);
  const OpensslServer none({});  // it serves one connection after the other
  {
    Connection second(none, client_of(), {.name = "localhost"});
    EXPECT_EQ(second.result, TlsHandshake::kDone);
    EXPECT_EQ(second.transport.stream().protocol(), TlsProtocol::kHttp1);
  }
  Connection third(none, client_of({.http1 = false, .http2 = true}), {.name = "localhost"});
  EXPECT_EQ(third.result, TlsHandshake::kFailed);
}

TEST(TlsOpenssl, AnotherHostIsRefused) {
  const OpensslServer server({});
  Connection to(server, client_of(), {.name = "elsewhere.example"});
  EXPECT_EQ(to.result, TlsHandshake::kFailed);
  EXPECT_EQ(to.transport.stream().failure(), "the peer's certificate is for another host");
}

TEST(TlsOpenssl, ADemandedCertificateIsShown) {
  for (const char* version : {"-tls1_2", "-tls1_3"}) {
    const OpensslServer server({version, "-Verify", "1", "-verify_return_error"});
    const MadeCertificate mine = signed_for({"gateway-1"});
    TlsClientConfig config;
    config.ca_pem = test_authority().certificate_pem;
    {
      Connection without(server, context_of(TlsSetup::client(config, {})), {.name = "localhost"});
      const bool refused =
          without.result == TlsHandshake::kFailed || !without.get().starts_with("HTTP/");
      EXPECT_TRUE(refused) << version;
    }
    config.certificate_pem = mine.certificate_pem;
    config.private_key_pem = mine.key_pem;
    Connection with(server, context_of(TlsSetup::client(config, {})), {.name = "localhost"});
    ASSERT_EQ(with.result, TlsHandshake::kDone) << with.transport.stream().failure();
    EXPECT_TRUE(with.get().starts_with("HTTP/1.0 200 ok")) << version;
  }
}

}  // namespace
}  // namespace weir::inline v0::io
