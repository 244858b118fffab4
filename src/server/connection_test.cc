#include "connection.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "io/transport.h"
#include "server/server_testing.h"
#include "shard.h"
#include "shared.h"

// One connection over a scripted transport, on a loop that the test runs step by step: no byte goes
// through a socket, so every state can be reached in an exact order of events.

namespace weir::inline v0::inline server {
namespace {

using testkit::reply;
using testkit::ScriptedHandler;

/// Returns the input that the test has set, and records the output.
class FakeTransport final : public io::Transport {
 public:
  // Set by the test.
  std::deque<std::string> input;  // one read each
  io::IoError when_empty = io::IoError::kAgain;
  std::size_t write_room = ~std::size_t{0};  // bytes until the socket is full
  io::IoError when_full = io::IoError::kAgain;
  bool pending = false;

  // Recorded from the connection.
  std::string output;
  io::Socket::Interest wanted{.read = true, .write = false};
  int shutdowns = 0;
  int closes = 0;
  bool orderly = false;

  io::IoResult read(std::span<std::byte> into) noexcept override {
    if (input.empty()) return unexpected(when_empty);
    std::string& next = input.front();
    const std::size_t size = std::min(next.size(), into.size());
    std::copy_n(reinterpret_cast<const std::byte*>(next.data()), size, into.begin());
    next.erase(0, size);
    if (next.empty()) input.pop_front();
    return size;
  }
  io::IoResult write(std::span<const io::ConstBuffer> pieces) noexcept override {
    std::size_t taken = 0;
    for (const io::ConstBuffer& piece : pieces) {
      const std::size_t size = std::min(piece.size, write_room);
      output.append(reinterpret_cast<const char*>(piece.data), size);
      write_room -= size;
      taken += size;
    }
    if (taken == 0) return unexpected(when_full);
    return taken;
  }
  bool has_pending() const noexcept override { return pending && !input.empty(); }
  io::Socket::Interest interest(io::Socket::Interest what) const noexcept override {
    const_cast<FakeTransport*>(this)->wanted = what;
    return {};  // the real socket reports nothing
  }
  void shutdown_write() noexcept override { ++shutdowns; }
  void close(bool in_order) noexcept override {
    ++closes;
    orderly = in_order;
  }
  bool secure() const noexcept override { return false; }
};

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() : ConnectionTest(testkit::small_config()) {}
  explicit ConnectionTest(const ServerConfig& config) : shared_(config, 1) {
    auto made = std::make_unique<ScriptedHandler>();
    handler = made.get();
    handler->headers = [this](ServerStream& stream, const ServerRequest& request) {
      note("headers " + std::string(request.meta.path));
      stream_ = &stream;
    };
    handler->body = [this](ServerStream&, const http::BodyChunk& chunk) {
      note("body " + std::string(chunk.text()) + (chunk.last() ? " end" : ""));
    };
    handler->complete = [this](ServerStream&) { note("complete"); };
    handler->finished = [this](ServerStream&) { note("finished"); };
    handler->aborted = [this](ServerStream&, CloseReason reason) {
      note("abort " + std::string(name_of(reason)));
    };
    shard_ = std::make_unique<LoopShard>(shared_, loop_, 0, std::move(made));
    shared_.shards = {shard_.get()};
    loop_.run_once();
    shard_->start();
    const auto place = shared_.connections.acquire(*shard_, {});
    EXPECT_TRUE(place.has_value());
    connection_ = *place;
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer_ = io::Fd(ends[1]);
    shard_->hand_over(io::Fd(ends[0]), *connection_);
    loop_.run_once();
    connection_->use(transport);
  }
  void TearDown() override {
    bool stopped = false;
    const auto note_stop = [](void* flag) { *static_cast<bool*>(flag) = true; };
    shard_->stop(io::Callback<>(note_stop, &stopped));
    for (int i = 0; i < 100 && !stopped; ++i) loop_.run_once();
    EXPECT_TRUE(stopped);
    EXPECT_EQ(transport.closes, 1);
    EXPECT_EQ(shared_.streams.stats().used, 0U);
    loop_.run_once();
  }

  /// The socket is readable: these reads succeed, then none or an error follows.
  void arrive(std::initializer_list<std::string_view> reads,
              io::IoError then = io::IoError::kAgain) {
    for (const std::string_view text : reads) transport.input.emplace_back(text);
    transport.when_empty = then;
    // A connection that has turned reading off gets no event.
    for (int i = 0; i < 20 && open() && transport.wanted.read; ++i) {
      events().on_readable();
      turn();
      if (transport.input.empty() && then == io::IoError::kAgain) break;
    }
  }
  void writable() {
    transport.write_room = ~std::size_t{0};
    events().on_writable();
    turn();
  }
  void turn() { loop_.run_once(); }
  [[nodiscard]] bool open() const { return transport.closes == 0; }
  [[nodiscard]] std::uint64_t closed_for(CloseReason reason) const {
    return shard_->counters().closed[static_cast<std::size_t>(reason)].get();
  }
  io::SocketEvents& events() { return *connection_; }
  ServerStream& stream() { return *stream_; }
  void answer_all() {
    handler->complete = [this](ServerStream& s) {
      note("complete");
      EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
    };
  }
  void note(std::string text) { seen.push_back(std::move(text)); }
  std::size_t answers() const {
    std::size_t count = 0;
    for (std::size_t at = transport.output.find("HTTP/1.1 200"); at != std::string::npos;
         at = transport.output.find("HTTP/1.1 200", at + 1)) {
      ++count;
    }
    return count;
  }

  using Seen = std::vector<std::string>;
  static constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nhost: t\r\n\r\n";
  static constexpr std::string_view kUpgrade =
      "GET /t HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
  static constexpr ResponseHead kSwitch = {.status = 101, .fields = {}, .content_length = {}};

  ScriptedHandler* handler = nullptr;
  FakeTransport transport;
  Seen seen;
  ServerStream* held = nullptr;  // kept by a test's own handler

 private:
  io::Loop loop_;
  ServerShared shared_;
  std::unique_ptr<LoopShard> shard_;
  Connection* connection_ = nullptr;
  ServerStream* stream_ = nullptr;
  io::Fd peer_;
};

TEST_F(ConnectionTest, AHeadInPiecesIsOneRequestAndTheConnectionIsKept) {
  answer_all();
  arrive({"GET /a HT"});
  EXPECT_EQ(seen, Seen{});
  arrive({"TP/1.1\r\nhost: t\r\n", "\r\n"});
  EXPECT_EQ(seen, (Seen{"headers /a", "complete", "finished"}));
  EXPECT_EQ(answers(), 1U);
  EXPECT_TRUE(open());
  EXPECT_TRUE(transport.wanted.read);
}

TEST_F(ConnectionTest, PipelinedRequestsAreAnsweredOneAfterTheOther) {
  answer_all();
  arrive({std::string(kGet) + std::string(kGet) + std::string(kGet)});
  EXPECT_EQ(answers(), 3U);
  EXPECT_EQ(seen.size(), 9U);
}

TEST_F(ConnectionTest, AnUnansweredRequestKeepsTheNextOneUnread) {
  arrive({kGet});
  EXPECT_EQ(seen, (Seen{"headers /a", "complete"}));
  arrive({kGet});
  events().on_readable();
  turn();
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_FALSE(transport.input.empty()) << "it stays in the kernel";
  EXPECT_EQ(reply(stream(), 200, "ok"), SendResult::kSent);
  turn();
  arrive({});
  EXPECT_EQ(seen, (Seen{"headers /a", "complete", "finished", "headers /a", "complete"}));
}

TEST_F(ConnectionTest, AClientThatEndsBetweenRequestsIsClosedInOrder) {
  answer_all();
  arrive({kGet}, io::IoError::kEof);
  EXPECT_FALSE(open());
  EXPECT_TRUE(transport.orderly);
  EXPECT_EQ(closed_for(CloseReason::kClient), 1U);
}

TEST_F(ConnectionTest, AClientThatEndsInARequestAbortsIt) {
  arrive({"POST /a HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nabc"}, io::IoError::kEof);
  EXPECT_EQ(seen, (Seen{"headers /a", "body abc", "abort client_abort"}));
  EXPECT_FALSE(transport.orderly);
  EXPECT_EQ(closed_for(CloseReason::kClientAbort), 1U);
}

TEST_F(ConnectionTest, AnErrorOfAReadNamesItsReason) {
  arrive({kGet}, io::IoError::kOther);
  EXPECT_EQ(seen, (Seen{"headers /a", "complete"})) << "nothing is read behind a request";
  EXPECT_EQ(reply(stream(), 200, "ok"), SendResult::kSent);
  turn();
  events().on_readable();
  turn();
  EXPECT_EQ(closed_for(CloseReason::kReadError), 1U);
}

TEST_F(ConnectionTest, AResetBetweenRequestsIsTheClientsEnd) {
  arrive({}, io::IoError::kReset);
  EXPECT_EQ(closed_for(CloseReason::kClient), 1U);
}

TEST_F(ConnectionTest, ATransportErrorOfTlsEndsTheConnectionForTls) {
  arrive({"POST /a HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n"}, io::IoError::kTls);
  EXPECT_EQ(seen, (Seen{"headers /a", "abort tls"}));
  EXPECT_EQ(closed_for(CloseReason::kTls), 1U);
}

TEST_F(ConnectionTest, WhatASocketDoesNotTakeGoesOutWhenItIsWritable) {
  answer_all();
  transport.write_room = 5;
  arrive({kGet});
  EXPECT_EQ(transport.output, "HTTP/");
  EXPECT_TRUE(transport.wanted.write);
  EXPECT_EQ(seen, (Seen{"headers /a", "complete"})) << "not finished before it is out";
  writable();
  EXPECT_EQ(seen.back(), "finished");
  EXPECT_EQ(answers(), 1U);
  EXPECT_FALSE(transport.wanted.write);
}

TEST_F(ConnectionTest, AWriteThatFailsAbortsTheRequest) {
  answer_all();
  transport.write_room = 0;
  transport.when_full = io::IoError::kReset;
  arrive({kGet});
  EXPECT_EQ(seen, (Seen{"headers /a", "complete", "abort client_abort"}));
  EXPECT_FALSE(open());
  EXPECT_FALSE(transport.orderly);
}

TEST_F(ConnectionTest, ABadRequestIsAnsweredThenInputIsDiscardedUntilTheClientEnds) {
  arrive({"GET /a HTTP/1.1\r\nbad header\r\n\r\n"});
  EXPECT_EQ(transport.output.substr(0, 12), "HTTP/1.1 400");
  EXPECT_EQ(transport.shutdowns, 1);
  EXPECT_TRUE(open());
  arrive({kGet});
  EXPECT_EQ(seen, Seen{}) << "nothing is served behind it";
  EXPECT_TRUE(transport.input.empty());
  arrive({}, io::IoError::kEof);
  EXPECT_FALSE(open());
  EXPECT_EQ(closed_for(CloseReason::kParseError), 1U);
}

TEST_F(ConnectionTest, ABodyAnsweredEarlyIsReadOffBeforeTheNextRequest) {
  handler->headers = [this](ServerStream& s, const ServerRequest& r) {
    note("headers " + std::string(r.meta.path));
    EXPECT_EQ(reply(s, 200, "ok"), SendResult::kSent);
  };
  arrive({"POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: 6\r\n\r\nabc"});
  EXPECT_EQ(seen, (Seen{"headers /p", "finished"}));
  arrive({"def" + std::string(kGet)});
  EXPECT_EQ(seen, (Seen{"headers /p", "finished", "headers /a", "finished"}));
  EXPECT_EQ(answers(), 2U);
}

TEST_F(ConnectionTest, AClientThatWaitsFor100GetsItOnceWhenTheBodyIsWanted) {
  answer_all();
  handler->headers = [this](ServerStream& s, const ServerRequest& r) {
    note(r.expect_continue ? "headers expect" : "headers");
    s.pause();
    held = &s;
  };
  arrive({"POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n"});
  EXPECT_EQ(transport.output, "") << "the handler has paused";
  held->resume();
  turn();
  EXPECT_EQ(transport.output, "HTTP/1.1 100 Continue\r\n\r\n");
  arrive({"abc"});
  EXPECT_EQ(seen, (Seen{"headers expect", "body abc end", "complete", "finished"}));
  EXPECT_EQ(answers(), 1U);
  EXPECT_TRUE(open());
}

TEST_F(ConnectionTest, AnAnswerInPlaceOf100EndsTheConnection) {
  handler->headers = [](ServerStream& s, const ServerRequest&) {
    EXPECT_EQ(reply(s, 200, "no"), SendResult::kSent);
  };
  arrive({"POST /p HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n"});
  EXPECT_NE(transport.output.find("connection: close"), std::string::npos) << transport.output;
  EXPECT_EQ(transport.shutdowns, 1);
  arrive({}, io::IoError::kEof);
  EXPECT_EQ(closed_for(CloseReason::kUnreadBody), 1U);
}

TEST_F(ConnectionTest, TrailersComeBeforeTheEndEvenIfTheHandlerPausesInBetween) {
  handler->trailers = [this](ServerStream& s, const http::HeaderList&) {
    note("trailers");
    s.pause();
  };
  arrive(
      {"POST /a HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
       "3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n"});
  EXPECT_EQ(seen, (Seen{"headers /a", "body abc", "trailers"}));
  stream().resume();
  turn();
  EXPECT_EQ(seen, (Seen{"headers /a", "body abc", "trailers", "body  end", "complete"}));
  EXPECT_EQ(reply(stream(), 200, "ok"), SendResult::kSent);
  turn();
  EXPECT_EQ(seen.back(), "finished");
}

TEST_F(ConnectionTest, ATunnelEndsWhenBothSidesHaveOursFirst) {
  arrive({kUpgrade});
  ASSERT_EQ(stream().send_headers(kSwitch), SendResult::kSent);
  turn();
  arrive({"to us"});
  EXPECT_EQ(stream().send_data("to them", true), 7U);
  turn();
  EXPECT_EQ(transport.shutdowns, 1);
  EXPECT_EQ(transport.output.substr(transport.output.size() - 7), "to them");
  arrive({"more"}, io::IoError::kEof);
  EXPECT_EQ(seen,
            (Seen{"headers /t", "complete", "body to us", "body more", "body  end", "finished"}));
  EXPECT_EQ(transport.shutdowns, 1) << "once";
  EXPECT_EQ(closed_for(CloseReason::kTunnelEnd), 1U);
}

TEST_F(ConnectionTest, ATunnelEndsWhenBothSidesHaveTheirsFirst) {
  arrive({kUpgrade});
  ASSERT_EQ(stream().send_headers(kSwitch), SendResult::kSent);
  turn();
  arrive({"to us"}, io::IoError::kEof);
  EXPECT_EQ(seen.back(), "body  end");
  EXPECT_TRUE(open());
  EXPECT_EQ(stream().send_data("last", true), 4U);
  turn();
  EXPECT_EQ(seen.back(), "finished");
  EXPECT_EQ(closed_for(CloseReason::kTunnelEnd), 1U);
}

TEST_F(ConnectionTest, BytesThatWaitInATunnelComeBeforeItsEnd) {
  handler->complete = [this](ServerStream& s) {
    note("complete");
    s.pause();
  };
  handler->headers = [this](ServerStream& s, const ServerRequest&) {
    held = &s;
    EXPECT_EQ(s.send_headers(kSwitch), SendResult::kSent);
  };
  arrive({std::string(kUpgrade) + "early"});
  EXPECT_EQ(seen, (Seen{"complete"}));
  held->resume();
  transport.when_empty = io::IoError::kEof;
  events().on_readable();  // before the loop runs what resume() scheduled
  turn();
  EXPECT_EQ(seen, (Seen{"complete", "body early", "body  end"}));
}

TEST_F(ConnectionTest, ATunnelIsNotReadBeforeTheHandlerKnowsItsRequest) {
  handler->headers = [this](ServerStream& s, const ServerRequest&) {
    held = &s;
    EXPECT_EQ(s.send_headers(kSwitch), SendResult::kSent);
    s.pause();
  };
  arrive({kUpgrade});
  EXPECT_EQ(seen, Seen{});
  held->resume();
  transport.input.emplace_back("raw");
  events().on_readable();
  turn();
  arrive({});
  EXPECT_EQ(seen, (Seen{"complete", "body raw"}));
}

TEST_F(ConnectionTest, BytesThatOnlyTheTransportKnowsAreReadWithoutTheSocket) {
  answer_all();
  transport.pending = true;
  transport.input.emplace_back(kGet.substr(0, 10));
  transport.input.emplace_back(kGet.substr(10));
  events().on_readable();
  for (int i = 0; i < 5; ++i) turn();
  EXPECT_EQ(answers(), 1U);
}

TEST_F(ConnectionTest, BytesThatOnlyTheTransportKnowsAreDiscardedWhileItLingers) {
  arrive({"GET / HTTP/1.1\r\n\r\n"});  // without a host: refused, and closed
  ASSERT_TRUE(open());
  transport.pending = true;
  transport.input = {"more", "and more"};
  events().on_readable();
  for (int i = 0; i < 5; ++i) turn();
  EXPECT_TRUE(transport.input.empty());
}

TEST_F(ConnectionTest, AResetByTheHandlerAbortsItsOwnStream) {
  arrive({kGet});
  ASSERT_EQ(stream().send_headers({.status = 200, .fields = {}, .content_length = 9}),
            SendResult::kSent);
  EXPECT_EQ(stream().send_data("abc", false), 3U);
  stream().reset();
  turn();
  EXPECT_EQ(seen, (Seen{"headers /a", "complete", "abort reset"}));
  EXPECT_FALSE(open());
  EXPECT_FALSE(transport.orderly);
}

TEST_F(ConnectionTest, AClientThatVanishesWhileNothingIsReadAbortsItsRequest) {
  arrive({kGet});
  events().on_disconnected();
  EXPECT_EQ(seen, (Seen{"headers /a", "complete", "abort client_abort"}));
}

}  // namespace
}  // namespace weir::inline v0::inline server
