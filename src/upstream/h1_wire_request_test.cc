#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weir/experimental/io/syscalls.h"

#include "upstream/dispatcher_testing.h"

// A request through a kernel that accepts a few bytes at a time.

namespace weir::upstream {
namespace {

struct SlowKernel {
  std::size_t accepts = 1;  // bytes per call
  bool refuses_between = false;
  bool refused = false;
  bool broken = false;
};
SlowKernel slow;

long send_some(int fd, const void* pieces, std::size_t count) {
  if (slow.broken) {
    errno = EPIPE;
    return -1;
  }
  if (slow.refuses_between && !std::exchange(slow.refused, !slow.refused)) {
    errno = EAGAIN;
    return -1;
  }
  const auto* piece = static_cast<const io::ConstBuffer*>(pieces);
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.append(reinterpret_cast<const char*>(piece[i].data), piece[i].size);
  }
  return ::send(fd, bytes.data(), std::min(bytes.size(), slow.accepts), MSG_NOSIGNAL);
}

long send_piece(int fd, const void* from, std::size_t size) {
  const io::ConstBuffer piece{static_cast<const std::byte*>(from), size};
  return send_some(fd, &piece, 1);
}

class H1WireRequestTest : public DispatcherTest {
 protected:
  void SetUp() override {
    slow = {};
    calls.send_pieces = send_some;
    calls.send = send_piece;
    loop.use(calls);
  }
  /// Sends pieces, each when the one before is sent.
  void send_all(
      Asked& asked, const std::vector<std::string>& pieces,
      std::span<const http::HeaderView> trailers, const std::function<void()>& meanwhile = [] {}) {
    std::size_t next = 0;
    const auto go_on = [&] {
      while (next < pieces.size()) {
        const bool last = ++next == pieces.size() && trailers.empty();
        if (!asked.call.send_body(pieces[next - 1], last)) return;
      }
      if (next++ == pieces.size() && !trailers.empty()) {
        static_cast<void>(asked.call.send_trailers(trailers));
      }
    };
    int writable = asked.seen.writable;
    if (asked.call.send_body({}, false)) go_on();
    run_until([&] {
      meanwhile();
      if (asked.seen.writable != writable) {
        writable = asked.seen.writable;
        go_on();
      }
      return next > pieces.size() || (next == pieces.size() && trailers.empty());
    });
  }
  io::Syscalls calls = io::system_calls();
};

TEST_F(H1WireRequestTest, ArrivesCompleteHoweverLittleTheKernelAccepts) {
  const std::vector<std::string> pieces = {"a", "bcdefghijklmnopq", std::string(44, 'x'), "end"};
  const http::HeaderView trailers[] = {{"x-sum", "12"}, {"x-more", "y"}};
  for (const bool refuses : {false, true}) {
    for (const std::size_t accepts : {1UL, 2UL, 5UL, 64UL, 10000UL}) {
      for (const int kind : {0, 1, 2}) {  // a length, chunks, chunks and trailers
        FakeOrigin origin;
        slow = {.accepts = accepts, .refuses_between = refuses};
        make({origin.name()});
        const Request request{
            .framing = kind == 0 ? RequestFraming::kLength : RequestFraming::kChunked,
            .length = 64};
        Asked asked;
        ASSERT_TRUE(ask(asked.call, request, {.caller_attempt = 7}));
        origin.accept(loop);
        send_all(asked, pieces,
                 kind == 2 ? std::span<const http::HeaderView>(trailers)
                           : std::span<const http::HeaderView>());
        std::string expected = text_of(request) + "x-weir-attempt: 7\r\n\r\n";
        if (kind == 0) {
          for (const std::string& piece : pieces) expected += piece;
        } else {
          expected += "1\r\na\r\n10\r\nbcdefghijklmnopq\r\n2c\r\n" + pieces[2] + "\r\n3\r\nend\r\n";
          expected += kind == 1 ? "0\r\n\r\n" : "0\r\nx-sum: 12\r\nx-more: y\r\n\r\n";
        }
        EXPECT_EQ(origin.read(loop, expected.size()), expected) << accepts << refuses << kind;
        origin.write(kNoContent);
        run_until_ended(asked.seen);
        EXPECT_TRUE(asked.seen.complete);
        EXPECT_EQ(dispatcher->idle_connections(), 1U);
        TearDown();
      }
    }
  }
}

TEST_F(H1WireRequestTest, AKeptBodyArrivesCompleteAgain) {
  const std::vector<std::string> pieces = {std::string(40'000, 'a'), "b", std::string(20'000, 'c')};
  slow = {.accepts = 30'000, .refuses_between = true};
  FakeOrigin origin;
  make({origin.name()});
  const Request request{.method = http::Method::kPut, .framing = RequestFraming::kChunked};
  Asked asked;
  ASSERT_TRUE(ask(asked.call, request));
  origin.accept(loop);
  const http::HeaderView trailer{"x-sum", "12"};
  send_all(asked, pieces, {&trailer, 1});
  run_until([&] { return counters().oldest_unanswered_ns.load() != 0; });
  origin.reset();
  origin.accept(loop);
  const std::string got = origin.read_until(loop, "x-sum: 12\r\n\r\n");
  // The sizes of the chunks may differ: one block of memory is one chunk.
  std::string content = got.substr(got.find("\r\n\r\n") + 4);
  std::string body;
  for (std::size_t size = 0; (size = std::stoul(content, nullptr, 16)) > 0;) {
    content.erase(0, content.find("\r\n") + 2);
    body += content.substr(0, size);
    ASSERT_EQ(content.substr(size, 2), "\r\n");
    content.erase(0, size + 2);
  }
  EXPECT_TRUE(body == pieces[0] + pieces[1] + pieces[2]);
  EXPECT_EQ(content, "0\r\nx-sum: 12\r\n\r\n");
  origin.write(kNoContent);
  run_until_ended(asked.seen);
  EXPECT_TRUE(asked.seen.complete);
}

TEST_F(H1WireRequestTest, ABodyThatIsTooLongToKeepArrivesComplete) {
  std::vector<std::string> pieces;
  std::string all;
  for (std::size_t i = 0; i < 12; ++i) {
    pieces.emplace_back(i % 3 == 0 ? 32 * 1024 : 7000 + i, static_cast<char>('a' + i));
    all += pieces.back();
  }
  for (const bool refuses : {false, true}) {
    slow = {.accepts = 5000, .refuses_between = refuses};
    FakeOrigin origin;
    make({origin.name()});
    Asked asked;
    ASSERT_TRUE(ask(asked.call, {.length = all.size()}));
    origin.accept(loop);
    std::string got;
    const auto read = [&] { got += origin.read_some(); };
    send_all(asked, pieces, {}, read);
    run_until([&] {
      read();
      return got.ends_with(pieces.back());
    });
    EXPECT_TRUE(got == text_of({.length = all.size()}) + "\r\n" + all);
    EXPECT_LE(memory.bodies.stats().peak, 4U);
    origin.write(kNoContent);
    run_until_ended(asked.seen);
    EXPECT_TRUE(asked.seen.complete);
    TearDown();
  }
}

TEST_F(H1WireRequestTest, ATunnelEndsAfterItsLastByte) {
  FakeOrigin origin;
  make({origin.name()});
  Asked asked;
  slow.accepts = 1 << 20;
  ASSERT_TRUE(
      ask(asked.call,
          {.method = http::Method::kGet, .framing = RequestFraming::kNone, .upgrade = true}));
  origin.accept(loop);
  origin.read_head(loop);
  origin.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: w\r\n\r\n");
  run_until([&] { return asked.seen.tunnel; });
  slow = {.accepts = 3, .refuses_between = true};
  EXPECT_FALSE(asked.call.send_body("all the last words", true));
  EXPECT_EQ(origin.read(loop, 19), "all the last words") << "then the end";
  EXPECT_TRUE(origin.ended());
  origin.close();
  run_until_ended(asked.seen);
}

TEST_F(H1WireRequestTest, AnAnswerIsReadFromAPeerThatReadsNoMore) {
  FakeOrigin origin;
  make({origin.name()});
  keep_one_idle(origin);
  Asked asked;
  slow.accepts = 1 << 20;
  ASSERT_TRUE(ask(asked.call, {.length = 10}));
  EXPECT_TRUE(asked.call.send_body({}, false));
  slow.broken = true;
  EXPECT_FALSE(asked.call.send_body("half", false));
  origin.read_head(loop);
  origin.write("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno");
  run_until_ended(asked.seen);
  EXPECT_TRUE(asked.seen.complete);
  EXPECT_EQ(asked.seen.status, 413U);
  run_until([&] { return upstream->connections() == 0; });
}

TEST_F(H1WireRequestTest, AKeptConnectionThatAcceptsNothingIsReplacedAtOnce) {
  FakeOrigin origin;
  make({origin.name()});
  slow.accepts = 1 << 20;
  keep_one_idle(origin);
  Asked asked;
  slow.broken = true;  // as after a reset that the loop has not seen
  ASSERT_TRUE(get(asked.call));
  slow.broken = false;
  origin.reset();
  run_until([&] { return failures(UpstreamFailure::kClosedEarly) == 1; });
  EXPECT_EQ(counters().connects.get(), 2U) << "nothing was sent: there is no reason to wait";
  origin.accept(loop);
  EXPECT_EQ(origin.read_head(loop), kGetOnWire) << "it is the first attempt that arrives";
  origin.write(kNoContent);
  run_until_ended(asked.seen);
  EXPECT_TRUE(asked.seen.complete);
}

}  // namespace
}  // namespace weir::upstream
