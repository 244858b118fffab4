// TLS when its socket fails, at any call of a handshake and of the first exchange.
#include <cerrno>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "breakable_testing.h"
#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::answer_path;
using testkit::BreakableCalls;
using testkit::tls_config;
using testkit::TlsClient;

std::uint64_t handshakes(const ServerStats& stats) {
  return std::accumulate(stats.tls.handshakes.begin(), stats.tls.handshakes.end(),
                         std::uint64_t{0});
}

class TlsFault : public testing::TestWithParam<int> {
 protected:
  TlsFault() {
    loops.at(0).use(BreakableCalls::calls());
    loops.start();
  }

  BreakableCalls breakable;
  io::LoopThreads loops{{.count = 1, .pin = false, .name = "fault"}};
};

TEST_P(TlsFault, ASocketThatFailsAtAnyCallEndsItsConnectionAndNothingElse) {
  Server server(tls_config(), loops, answer_path());
  ASSERT_TRUE(server.start().has_value());
  TlsClient standing(server.tls_port());
  ASSERT_TRUE(standing.shake());
  ASSERT_EQ(standing.get("/").status, 200);
  int failed = 0;   // in the handshake
  int cut_off = 0;  // after the handshake
  int lived = 0;
  std::uint64_t attempts = 1;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (int at = 0; at < 24; ++at) {
      SCOPED_TRACE(at);
      BreakableCalls::break_at(at, GetParam());
      {
        TlsClient client(server.tls_port(), {.version_max = version});
        ++attempts;
        if (!client.shake()) {
          ++failed;
        } else {
          bool served = true;
          for (int i = 0; served && i < 6; ++i) served = client.get("/").status == 200;
          ++(served ? lived : cut_off);
        }
      }
      BreakableCalls::mend();
      EXPECT_TRUE(testkit::eventually(server, [&](const ServerStats& s) {
        return s.connections.used == 1 && s.tls.handshake_slots.used == 0 &&
               s.read_regions.used == 0 && s.write_buffers.used == 0;
      }));
      EXPECT_EQ(handshakes(server.stats()), attempts) << "each has one result";
      EXPECT_EQ(standing.get("/still").body, "/still");
    }
  }
  EXPECT_GT(failed, 4);
  EXPECT_GT(cut_off, 4);
  EXPECT_GT(lived, 4);
  const ServerStats stats = server.stats();
  EXPECT_GE(stats.tls.handshakes_by(HandshakeResult::kAborted) +
                stats.tls.handshakes_by(HandshakeResult::kFailed) +
                stats.tls.handshakes_by(HandshakeResult::kNoMemory),  // ENOBUFS
            static_cast<std::uint64_t>(failed) / 2)
      << "a client of TLS 1.3 may be done, or fail, before the server is";
  EXPECT_EQ(stats.critical_shed, 0U);
  server.stop();
}

INSTANTIATE_TEST_SUITE_P(Errors, TlsFault, testing::Values(ECONNRESET, EIO, EPIPE, ENOBUFS));

}  // namespace
}  // namespace weir::inline v0::inline server
