#include "io/tls_stream.h"

#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "tls_testing.h"

namespace weir::inline v0::io {
namespace {

TlsContext::Ptr server_context() {
  static const TlsContext::Ptr made = context_of(server_setup());
  return made;
}
TlsContext::Ptr client_context() {
  static const TlsContext::Ptr made = context_of(client_setup());
  return made;
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST(TlsStream, CarriesBytesBothWays) {
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  EXPECT_EQ(pair.server.tls.version(), "TLSv1.3");
  EXPECT_TRUE(pair.server.tls.established());
  EXPECT_EQ(carry(pair.client, pair.server, "hello"), "hello");
  const std::string large = pattern(300'000);
  EXPECT_EQ(carry(pair.server, pair.client, large), large);
  EXPECT_EQ(carry(pair.client, pair.server, large), large);
}

TEST(TlsStream, SpeaksVersion12) {
  TlsPair pair;
  pair.begin(server_context(), client_context());
  SSL_set_max_proto_version(pair.client.tls.native(), TLS1_2_VERSION);
  EXPECT_EQ(pair.shake().first, TlsHandshake::kDone);
  EXPECT_EQ(pair.server.tls.version(), "TLSv1.2");
  EXPECT_EQ(carry(pair.client, pair.server, "hello"), "hello");
}

TEST(TlsStream, AWriteThatIsOnlyPartlyTakenGoesOnFromElsewhere) {
  TlsPair pair(4096);  // the kernel accepts little at a time
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const std::string large = pattern(200'000);
  EXPECT_EQ(carry(pair.server, pair.client, large), large);
}

TEST(TlsStream, GathersPieces) {
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const std::array<ConstBuffer, 3> pieces = {piece_of("a"), piece_of("bc"), piece_of("def")};
  const IoResult put = pair.server.tls.write(pieces);
  ASSERT_TRUE(put);
  EXPECT_EQ(*put, 6U);
  std::array<std::byte, 100> into{};
  const IoResult got = pair.client.tls.read(into);
  ASSERT_TRUE(got);
  EXPECT_EQ(std::string_view(reinterpret_cast<char*>(into.data()), *got), "abcdef") << "one record";
}

TEST(TlsStream, TellsOfBytesThatTheSocketWillNotAnnounce) {
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const std::string text = pattern(10'000);
  const ConstBuffer piece = piece_of(text);
  ASSERT_TRUE(pair.client.tls.write({&piece, 1}));
  std::array<std::byte, 100> small{};
  ASSERT_TRUE(pair.server.tls.read(small));
  EXPECT_TRUE(pair.server.tls.has_pending());
  std::size_t read = small.size();
  while (pair.server.tls.has_pending()) {
    const IoResult got = pair.server.tls.read(small);
    ASSERT_TRUE(got);
    read += *got;
  }
  EXPECT_EQ(read, text.size());
  EXPECT_EQ(pair.server.tls.read(small).error(), IoError::kAgain);
}

TEST(TlsStream, StagedBytesComeFirst) {
  TlsPair pair;
  pair.begin(server_context(), client_context());
  ASSERT_EQ(pair.client.tls.handshake(), TlsHandshake::kAgain);
  std::array<std::byte, 4096> hello{};
  const IoResult got = pair.server.socket.read(hello);  // before a TLS object is needed
  ASSERT_TRUE(got);
  pair.server.tls.stage(std::span(hello).first(*got));
  const auto [s, c] = pair.shake();
  EXPECT_EQ(s, TlsHandshake::kDone);
  EXPECT_EQ(c, TlsHandshake::kDone);
  EXPECT_EQ(pair.server.tls.staged_left(), 0U);
}

TEST(TlsStream, AnOrderlyEndIsEof) {
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  pair.client.tls.shutdown_write();
  std::array<std::byte, 100> into{};
  EXPECT_EQ(pair.server.tls.read(into).error(), IoError::kEof);
  EXPECT_EQ(pair.server.tls.read(into).error(), IoError::kEof) << "and stays so";
  EXPECT_EQ(carry(pair.server, pair.client, "last words"), "last words");
}

TEST(TlsStream, AnEndThatComesWithTheLastBytesIsPending) {
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const ConstBuffer piece = piece_of("bye");
  ASSERT_EQ(pair.server.tls.write({&piece, 1}).value(), 3U);
  pair.server.tls.shutdown_write();
  std::array<std::byte, 100> into{};
  ASSERT_EQ(pair.client.tls.read(into).value(), 3U);
  EXPECT_TRUE(pair.client.tls.has_pending()) << "the socket may announce nothing more";
  EXPECT_EQ(pair.client.tls.read(into).error(), IoError::kEof);
  EXPECT_FALSE(pair.client.tls.has_pending());
}

TEST(TlsStream, AnEndWithoutNoticeIsEofForServersAndAResetForClients) {
  std::array<std::byte, 100> into{};
  {
    TlsPair pair;
    ASSERT_TRUE(pair.connect(server_context(), client_context()));
    pair.client.socket.shutdown_write();
    EXPECT_EQ(pair.server.tls.read(into).error(), IoError::kEof);
  }
  TlsPair pair;
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  pair.server.socket.shutdown_write();
  EXPECT_EQ(pair.client.tls.read(into).error(), IoError::kReset) << "a cut response is not whole";
}

TEST(TlsStream, GarbageIsATlsError) {
  TlsPair pair;
  ASSERT_TRUE(pair.server.tls.begin(server_context(), pair.server.socket));
  const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(pair.client.socket.write(std::as_bytes(std::span(garbage.data(), garbage.size()))));
  EXPECT_EQ(pair.server.tls.handshake(), TlsHandshake::kFailed);
  EXPECT_EQ(pair.server.tls.failure(), "http request");
  EXPECT_EQ(pair.server.tls.handshake(), TlsHandshake::kFailed) << "and stays so";

  TlsPair later;
  ASSERT_TRUE(later.connect(server_context(), client_context()));
  ASSERT_TRUE(later.client.socket.write(std::as_bytes(std::span(garbage.data(), garbage.size()))));
  std::array<std::byte, 100> into{};
  EXPECT_EQ(later.server.tls.read(into).error(), IoError::kTls);
  EXPECT_FALSE(later.server.tls.failure().empty());
  const ConstBuffer piece = piece_of("x");
  EXPECT_EQ(later.server.tls.write({&piece, 1}).error(), IoError::kReset);
}

TEST(TlsStream, RenegotiationIsRefused) {
  TlsPair pair;
  pair.begin(server_context(), client_context());
  SSL_set_max_proto_version(pair.client.tls.native(), TLS1_2_VERSION);
  SSL_clear_options(pair.client.tls.native(), SSL_OP_NO_RENEGOTIATION);
  ASSERT_EQ(pair.shake().first, TlsHandshake::kDone);
  ASSERT_EQ(SSL_renegotiate(pair.client.tls.native()), 1);
  static_cast<void>(pair.client.tls.handshake());
  std::array<std::byte, 100> into{};
  EXPECT_FALSE(pair.server.tls.read(into));
  EXPECT_NE(pair.client.tls.handshake(), TlsHandshake::kDone);
}

/// Sends `count` key updates, each with an answer requested, and a byte after each.
IoError after_key_updates(int count) {
  TlsPair pair;
  if (!pair.connect(server_context(), client_context())) return IoError::kOther;
  std::array<std::byte, 100> into{};
  for (int i = 0; i < count; ++i) {
    SSL_key_update(pair.client.tls.native(), SSL_KEY_UPDATE_REQUESTED);
    const ConstBuffer piece = piece_of("x");
    if (!pair.client.tls.write({&piece, 1})) return IoError::kOther;
    const IoResult got = pair.server.tls.read(into);
    if (!got) return got.error();
    static_cast<void>(pair.client.tls.read(into));
  }
  EXPECT_EQ(carry(pair.server, pair.client, "alive"), "alive");
  return IoError::kAgain;
}

TEST(TlsStream, TenKeyUpdatesPass) {
  EXPECT_EQ(after_key_updates(10), IoError::kAgain);
}

TEST(TlsStream, AStormOfKeyUpdatesEndsTheConnection) {
  EXPECT_EQ(after_key_updates(1000), IoError::kTls);
}

// ---- Failures of the socket, one by one ---------------------------------------------------------

/// Results of the next socket calls: errno values (0: call the real function), then always real.
struct Script {
  std::vector<int> errors;
  std::size_t at = 0;
  std::size_t bytes_max = 0;  // per call; 0: any

  int next() { return at < errors.size() ? errors[at++] : 0; }
};
Script* playing = nullptr;

long scripted_recv(int fd, void* into, std::size_t size) {
  if (const int error = playing->next(); error != 0) {
    errno = error;
    return -1;
  }
  if (playing->bytes_max != 0) size = std::min(size, playing->bytes_max);
  return system_calls().recv(fd, into, size);
}
long scripted_send(int fd, const void* from, std::size_t size) {
  if (const int error = playing->next(); error != 0) {
    errno = error;
    return -1;
  }
  if (playing->bytes_max != 0) size = std::min(size, playing->bytes_max);
  return system_calls().send(fd, from, size);
}

struct ScriptedPair : TlsPair {
  explicit ScriptedPair(Script script_given) : script(std::move(script_given)) {
    calls = system_calls();
    calls.recv = scripted_recv;
    calls.send = scripted_send;
    playing = &script;
    loop.use(calls);
  }
  Script script;
  Syscalls calls{};
};

TEST(TlsStream, SmallPiecesAreSentTogether) {
  ScriptedPair pair({.errors = {}, .at = 0, .bytes_max = 0});
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const std::string large = pattern(20'000);
  const std::array<ConstBuffer, 4> pieces = {piece_of("a"), piece_of("bc"), piece_of(large),
                                             piece_of("def")};
  pair.script = {.errors = std::vector<int>(100, 0), .at = 0, .bytes_max = 0};
  const IoResult put = pair.server.tls.write(pieces);
  ASSERT_TRUE(put);
  EXPECT_EQ(*put, large.size() + 6);
  EXPECT_EQ(pair.script.at, 2U) << "system calls: one for each record";
  EXPECT_EQ(carry(pair.server, pair.client, "!").substr(0, 3), "abc");
}

TEST(TlsStream, PiecesArriveInOrderHoweverTheSocketTakesThem) {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    ScriptedPair pair({.errors = {}, .at = 0, .bytes_max = 0});
    ASSERT_TRUE(pair.connect(server_context(), client_context()));
    pair.script.bytes_max = 1 + rng.below(3000);
    for (int i = 0; i < 200; ++i) pair.script.errors.push_back(rng.below(2) == 0 ? EAGAIN : 0);
    const std::string text = pattern(20'000);
    std::string arrived;
    std::size_t sent = 0;
    std::size_t known = 0;  // the output grows behind what was offered
    for (int turn = 0; turn < 5000 && arrived.size() < text.size(); ++turn) {
      known = std::min(text.size(), known + rng.below(2000));
      std::vector<ConstBuffer> pieces;
      for (std::size_t at = sent; at < known;) {
        const std::size_t size = std::min<std::size_t>(known - at, 1 + rng.below(6000));
        pieces.push_back(piece_of(std::string_view(text).substr(at, size)));
        at += size;
      }
      if (const IoResult put = pair.server.tls.write(pieces); put) {
        sent += *put;
      } else {
        ASSERT_EQ(put.error(), IoError::kAgain);
      }
      std::array<std::byte, 4096> into;
      while (const IoResult got = pair.client.tls.read(into)) {
        arrived.append(reinterpret_cast<const char*>(into.data()), *got);
      }
    }
    ASSERT_EQ(arrived, text) << round;
  }
}

TEST(TlsStream, OneByteAtATimeIsEnough) {
  ScriptedPair pair({.errors = {}, .at = 0, .bytes_max = 1});
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  EXPECT_EQ(carry(pair.client, pair.server, "a few bytes"), "a few bytes");
  EXPECT_EQ(carry(pair.server, pair.client, "and back"), "and back");
}

TEST(TlsStream, AgainAtEveryCallOnlyDelays) {
  Rng rng(3);
  std::vector<int> errors;
  for (int i = 0; i < 400; ++i) errors.push_back(rng.below(2) == 0 ? EAGAIN : 0);
  ScriptedPair pair({.errors = errors, .at = 0, .bytes_max = 700});
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  const std::string text = pattern(5000);
  EXPECT_EQ(carry(pair.client, pair.server, text), text);
  EXPECT_EQ(carry(pair.server, pair.client, text), text);
}

TEST(TlsStream, AResetAtAnyCallOfTheHandshakeFailsCleanly) {
  int survived = 0;
  for (std::size_t at = 0; at < 40; ++at) {
    std::vector<int> errors(at, 0);
    errors.push_back(ECONNRESET);
    ScriptedPair pair({.errors = errors, .at = 0, .bytes_max = 0});
    pair.begin(server_context(), client_context());
    const auto [s, c] = pair.shake();
    const bool both = s == TlsHandshake::kDone && c == TlsHandshake::kDone;
    if (both) ++survived;
    if (pair.script.at > at && !both) {
      EXPECT_TRUE(s == TlsHandshake::kFailed || c == TlsHandshake::kFailed) << at;
    }
  }
  EXPECT_GT(survived, 0) << "it is over after fewer calls than that";
  EXPECT_LT(survived, 40);
}

TEST(TlsStream, ErrorsOfTheSocketKeepTheirNames) {
  ScriptedPair pair({.errors = {}, .at = 0, .bytes_max = 0});
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  pair.script = {.errors = {ETIMEDOUT}, .at = 0, .bytes_max = 0};
  std::array<std::byte, 100> into{};
  EXPECT_EQ(pair.server.tls.read(into).error(), IoError::kTimedOut);
  pair.script = {.errors = {EPIPE}, .at = 0, .bytes_max = 0};
  const ConstBuffer piece = piece_of("x");
  EXPECT_EQ(pair.client.tls.write({&piece, 1}).error(), io_error_of(EPIPE));
}

TEST(TlsStream, ARefusedWriteIsTriedAgainWithMoreBehindIt) {
  ScriptedPair pair({.errors = {}, .at = 0, .bytes_max = 0});
  ASSERT_TRUE(pair.connect(server_context(), client_context()));
  pair.script = {.errors = {EAGAIN}, .at = 0, .bytes_max = 0};
  const std::string first = "beginning";
  const std::string longer = first + " and more";
  const ConstBuffer piece = piece_of(first);
  EXPECT_EQ(pair.server.tls.write({&piece, 1}).error(), IoError::kAgain);
  EXPECT_FALSE(pair.server.tls.interest({.read = false, .write = true}).read);
  EXPECT_EQ(carry(pair.server, pair.client, longer), longer);
}

}  // namespace
}  // namespace weir::inline v0::io
