#include "upstream_watch.h"

#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using std::chrono::milliseconds;

struct UpstreamWatchTest : ::testing::Test {
  UpstreamWatchTest() {
    upstream::UpstreamConfig config;
    config.name = "app";
    std::vector<upstream::DiscoveredEndpoint> endpoints(2);
    endpoints[0].address = *io::parse_socket_name("127.0.0.1:1");
    endpoints[1].address = *io::parse_socket_name("127.0.0.1:2");
    upstream::Upstream::Setup setup;
    setup.config = config;
    upstreams.all.push_back(
        std::make_shared<ServedUpstream>(place, std::move(setup), std::move(endpoints), now));
    watch = std::make_unique<UpstreamWatch>(log);
  }
  ~UpstreamWatchTest() override { std::filesystem::remove(path); }

  void look_for(Duration how_long) {
    for (const TimePoint end = now + how_long; now < end; now += milliseconds(50)) {
      for (std::size_t i = 0; i < 2; ++i) note(i, policy::HealthEvent::kTick);
      watch->look(upstreams, now);
    }
  }
  void fails(std::size_t i) { note(i, policy::HealthEvent::kConnectFailed); }
  void answers(std::size_t i) { note(i, policy::HealthEvent::kAnswered); }
  void note(std::size_t i, policy::HealthEvent event) {
    upstreams.all[0]->upstream.endpoints()->members[i].endpoint->note(event, now);
  }
  std::string told() {
    writer->stop();
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const std::string path = std::filesystem::temp_directory_path() /
                           ("weir_upstream_watch_" + std::to_string(::getpid()) + "_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::unique_ptr<io::LineWriter> writer = *io::LineWriter::open({.path = path});
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  UpstreamPlace place{"app", ScopeId::kFirst, 1};
  UpstreamSet upstreams;
  OperatorLog log{{"app"}, writer.get()};
  std::unique_ptr<UpstreamWatch> watch;
};

TEST_F(UpstreamWatchTest, SomeThatFailAreNoNews) {
  fails(0);
  look_for(std::chrono::seconds(5));
  EXPECT_EQ(told(), "");
}

TEST_F(UpstreamWatchTest, OneLineWhenAllFailHoweverOftenAndOneWhenOneAnswers) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    fails(0);
    fails(1);
    look_for(std::chrono::seconds(7));
  }
  answers(1);
  look_for(std::chrono::seconds(7));
  EXPECT_EQ(told(),
            "weir: upstream app: no endpoint is available (0 of 2); /endpoints of the admin "
            "endpoint says why\n"
            "weir: upstream app: an endpoint answers again\n");
}

TEST_F(UpstreamWatchTest, ManyChangesInASecondAreOneLineAndTheLastStateIsTold) {
  for (int change = 0; change < 10; ++change) {
    fails(0);
    fails(1);
    look_for(milliseconds(50));
    answers(1);
    look_for(milliseconds(50));
  }
  look_for(std::chrono::seconds(2));
  const std::string lines = told();
  EXPECT_LE(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_TRUE(lines.ends_with("an endpoint answers again\n")) << lines;
}

TEST_F(UpstreamWatchTest, OneLineWhenAQueueOverflowsAndOneWhenNoneDoes) {
  upstream::Endpoint& endpoint = *upstreams.all[0]->upstream.endpoints()->members[1].endpoint;
  std::deque<control::OutgoingItem> waiting(480);  // of 500
  const auto put = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      ASSERT_TRUE(endpoint.queue(0).put(waiting[i], now).accepted());
    }
  };
  put(0, 400);
  look_for(std::chrono::seconds(2));  // throttled is no news
  put(400, 480);
  look_for(std::chrono::seconds(2));
  for (control::OutgoingItem& item : waiting) endpoint.queue(0).withdraw(item);
  look_for(std::chrono::seconds(2));
  EXPECT_EQ(told(),
            "weir: upstream app: the queue to 127.0.0.1:2 is full (overflow): it takes fewer "
            "connections than requests come; /endpoints of the admin endpoint says how many wait\n"
            "weir: upstream app: no queue to an endpoint is full any more\n");
}

TEST_F(UpstreamWatchTest, AnUpstreamThatIsReplacedWhileAllFailIsNoNewsUntilItsOwnFail) {
  fails(0);
  fails(1);
  look_for(milliseconds(100));
  upstream::Upstream::Setup setup;
  setup.config.name = "app";
  std::vector<upstream::DiscoveredEndpoint> endpoints(2);
  endpoints[0].address = *io::parse_socket_name("127.0.0.1:1");
  endpoints[1].address = *io::parse_socket_name("127.0.0.1:2");
  upstreams.all = {
      std::make_shared<ServedUpstream>(place, std::move(setup), std::move(endpoints), now)};
  look_for(std::chrono::seconds(3));
  const std::string lines = told();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

struct UpstreamToBeFound : UpstreamWatchTest {
  UpstreamToBeFound() {
    upstream::UpstreamConfig config;
    config.name = "app";
    upstream::Upstream::Setup setup;
    setup.config = config;
    upstreams.all = {std::make_shared<ServedUpstream>(
        place, std::move(setup), std::vector<upstream::DiscoveredEndpoint>{}, now)};
  }
  void look_for_a_while() {
    for (int i = 0; i < 40; ++i) watch->look(upstreams, now += milliseconds(50));
  }
};

TEST_F(UpstreamToBeFound, NothingIsToldBeforeTheFirstAnswerOfItsSources) {
  look_for_a_while();
  EXPECT_EQ(told(), "");
}

TEST_F(UpstreamToBeFound, AnEmptyAnswerIsTold) {
  upstreams.all[0]->upstream.set_discovered();
  look_for_a_while();
  EXPECT_EQ(told(),
            "weir: upstream app: no endpoint is available (0 of 0); /endpoints of the admin "
            "endpoint says why\n");
}

TEST_F(UpstreamWatchTest, TellsOnceThatAnUpstreamIsTooSlowToBeHedged) {
  upstream::Upstream& upstream = upstreams.all[0]->upstream;
  look_for(milliseconds(200));
  upstream.publish(0, policy::HedgeCohort{.median = milliseconds(80), .slow = true});
  look_for(milliseconds(2500));
  upstream.publish(0, policy::HedgeCohort{.median = milliseconds(8)});
  look_for(milliseconds(2500));
  EXPECT_EQ(told(),
            "weir: upstream app: reads that usually take 80.0 ms are not hedged; raise "
            "hedge.max_delay_ms above that to hedge them\n"
            "weir: upstream app: the usual answer takes 8.0 ms; reads are hedged again\n");
}

}  // namespace
}  // namespace weir::gateway
