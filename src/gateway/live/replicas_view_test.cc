#include "live/replicas_view.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/endpoint_set_testing.h"

namespace weir::gateway {
namespace {

using policy::HealthEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

enum Column : std::size_t {
  kId,
  kName,
  kState,
  kReason,
  kSince,
  kP50,
  kP99,
  kInFlight,
  kQuiet = 13,
  kSpark
};

/// Five replicas; the third is slow, the fourth cannot be reached.
struct ReplicasViewTest : ::testing::Test {
  ReplicasViewTest() {
    for (int i = 1; i <= 5; ++i) fake.add(7000 + i);
    second();
    fake.set.members[3].endpoint->note(HealthEvent::kConnectFailed, fake.now);
    for (int i = 0; i < 5; ++i) {
      if (i != 3) fake.answer(at(i), 20, milliseconds(i == 2 ? 200 : 10 + i));
    }
    upstream.cohort = {.median = milliseconds(11), .p99 = milliseconds(200)};
    second();
  }
  upstream::Endpoint& at(int i) { return *fake.set.members[static_cast<std::size_t>(i)].endpoint; }
  void second() {
    fake.now += seconds(1);
    static_cast<void>(upstream.endpoints.read(fake.set, fake.now, 1, 1000));
  }
  LiveJson first(const LiveQuery& query) { return ReplicasView(query).next(upstream, fake.now); }
  /// The last digit of each port, in the order of the page.
  static std::vector<int> ports(const LiveJson& page) {
    std::vector<int> all;
    for (const LiveJson& row : page["rows"])
      all.push_back(row[kName].get<std::string>().back() - '0');
    return all;
  }

  testkit::FakeEndpoints fake;
  LiveUpstream upstream{"app"};
};

TEST_F(ReplicasViewTest, TheWorstComeFirst) {
  const LiveJson page = first({});
  EXPECT_THAT(ports(page), ElementsAre(4, 3, 5, 2, 1));
  EXPECT_EQ(page["total"], 5);
  EXPECT_EQ(page["bad"], 2);
  EXPECT_EQ(page["rows"][0][kState], "ejected");
  EXPECT_EQ(page["rows"][0][kReason], "connect_failed");
  EXPECT_EQ(page["columns"].size(), page["rows"][0].size());
  EXPECT_EQ(page["columns"][kSpark], "spark");
}

TEST_F(ReplicasViewTest, TheServerSortsFiltersAndPages) {
  at(0).add_in_flight();
  at(0).add_in_flight();
  at(4).add_in_flight();
  second();
  EXPECT_THAT(ports(first({.sort = ReplicaSort::kName})), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(ports(first({.sort = ReplicaSort::kInFlight, .rows = 2})), ElementsAre(1, 5));
  EXPECT_THAT(ports(first({.sort = ReplicaSort::kP99, .rows = 1})), ElementsAre(3));
  EXPECT_THAT(ports(first({.sort = ReplicaSort::kName, .from = 3, .rows = 50})), ElementsAre(4, 5));
  EXPECT_THAT(ports(first({.sort = ReplicaSort::kName, .bad = true})), ElementsAre(3, 4));
  const LiveJson filtered = first({.filter = ":7002"});
  EXPECT_THAT(ports(filtered), ElementsAre(2));
  EXPECT_EQ(filtered["matching"], 1);
  EXPECT_EQ(filtered["total"], 5);
  EXPECT_TRUE(first({.from = 1000})["rows"].empty()) << "beyond the end is an empty page";
}

TEST_F(ReplicasViewTest, ARowIsSentAgainOnlyWhenItChanges) {
  ReplicasView view({.sort = ReplicaSort::kName});
  const LiveJson all = view.next(upstream, fake.now);
  EXPECT_EQ(all["rows"].size(), 5U);
  EXPECT_TRUE(all["rows"][0][kSpark].is_array());
  second();
  const LiveJson silent = view.next(upstream, fake.now);
  ASSERT_THAT(ports(silent), ElementsAre(1, 2, 3, 5)) << "their p50 is old now";
  EXPECT_EQ(silent["rows"][0][kQuiet], true);
  EXPECT_EQ(all["rows"][0][kQuiet], false);
  second();
  const LiveJson quiet = view.next(upstream, fake.now);
  EXPECT_TRUE(quiet["rows"].empty()) << "that a second passed is no change: " << quiet.dump();
  EXPECT_EQ(quiet["order"], all["order"]);
  at(1).add_in_flight();
  second();
  const LiveJson changed = view.next(upstream, fake.now);
  EXPECT_THAT(ports(changed), ElementsAre(2));
  EXPECT_EQ(changed["rows"][0][kInFlight], 1);
  EXPECT_TRUE(changed["rows"][0][kSpark].is_null()) << "the page has the earlier points";
}

TEST_F(ReplicasViewTest, ARowThatEntersThePageComesWhole) {
  ReplicasView view({.rows = 1});
  EXPECT_THAT(ports(view.next(upstream, fake.now)), ElementsAre(4));
  at(3).note(HealthEvent::kOperatorDrain, fake.now);
  at(0).note(HealthEvent::kSuspected, fake.now);  // worse than draining
  second();
  const LiveJson page = view.next(upstream, fake.now);
  EXPECT_THAT(ports(page), ElementsAre(1));
  EXPECT_TRUE(page["rows"][0][kSpark].is_array());
}

TEST_F(ReplicasViewTest, ASparkBeginsWithTheFirstAnswer) {
  const LiveJson page = first({.sort = ReplicaSort::kName});
  EXPECT_EQ(page["rows"][0][kSpark].size(), 1U) << "nothing in its first second";
  EXPECT_TRUE(page["rows"][3][kSpark].empty()) << "never an answer: " << page["rows"][3].dump();
}

TEST_F(ReplicasViewTest, TheHistogramCountsEveryReplicaThatAnsweredOnce) {
  std::uint32_t all = 0;
  double last = 0;
  const LiveJson page = first({.rows = 1});
  for (const LiveJson& bin : page["histogram"]) {
    EXPECT_GT(bin[0].get<double>(), last);
    last = bin[0].get<double>();
    all += bin[1].get<std::uint32_t>();
  }
  EXPECT_EQ(all, 4U);
}

TEST_F(ReplicasViewTest, ThousandReplicasCostNoMoreThanThePage) {
  for (int i = 0; i < 995; ++i) fake.add(8000 + i);
  second();
  const LiveJson page = first({});
  EXPECT_EQ(page["total"], 1000);
  EXPECT_EQ(page["rows"].size(), 50U);
  EXPECT_LT(page.dump().size(), 8192U);
}

}  // namespace
}  // namespace weir::gateway
