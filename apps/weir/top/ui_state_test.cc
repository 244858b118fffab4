#include "ui_state.h"

#include <gtest/gtest.h>

#include "top_testing.h"

namespace weir::app::top {
namespace {

class UiStateTest : public testing::Test {
 protected:
  UiState after(std::string_view bytes, UiState from = {}) const {
    KeyReader reader;
    std::vector<Key> keys = reader.feed(bytes);
    for (const Key& key : reader.flush()) keys.push_back(key);
    for (const Key& key : keys) from = on_key(from, key, snapshot_);
    return from;
  }
  Snapshot snapshot_ = sample_snapshot("overloaded", Page::kNow);
};

TEST_F(UiStateTest, ChangesThePageByNumberTabAndArrows) {
  EXPECT_EQ(after("3").page, Page::kLimit);
  EXPECT_EQ(after("6").page, Page::kEvents);
  EXPECT_EQ(after("7").page, Page::kNow);
  EXPECT_EQ(after("\t\t").page, Page::kLimit);
  EXPECT_EQ(after("\x1b[Z").page, Page::kEvents);
  EXPECT_EQ(after("\x1b[C\x1b[C\x1b[D").page, Page::kRefusals);
  EXPECT_EQ(after("6\t").page, Page::kNow);
}

TEST_F(UiStateTest, AsksForAnotherStreamOnlyIfItShowsSomethingElse) {
  EXPECT_EQ(live_path(after("")), "/live?view=now");
  EXPECT_EQ(live_path(after("6")), "/live?view=now");
  EXPECT_EQ(live_path(after("sbp/x\r")), "/live?view=now");
  EXPECT_EQ(live_path(after("2")), "/live?view=refusals");
  EXPECT_EQ(live_path(after("4")), "/live?view=replicas&sort=worst&from=0&rows=100");
  EXPECT_EQ(live_path(after("4sb/a&b =\xc3\xa9\r")),
            "/live?view=replicas&sort=name&filter=a%26b%20%3D%C3%A9&bad=1&from=0&rows=100");
}

TEST_F(UiStateTest, GoesRoundTheUpstreams) {
  EXPECT_EQ(after("u").upstream, "reports");
  EXPECT_EQ(after("uu").upstream, "app");
  EXPECT_EQ(live_path(after("u")), "/live?view=now&upstream=reports");
  snapshot_.upstreams = {"app"};
  EXPECT_EQ(after("u").upstream, "");
  EXPECT_EQ(after("u").note, "there is one upstream only");
  EXPECT_EQ(after("ub").note, "");
}

TEST_F(UiStateTest, TypesAFilterThatTakesEveryLetter) {
  const UiState typing = after("/quit");
  EXPECT_TRUE(typing.typing);
  EXPECT_FALSE(typing.quit);
  EXPECT_EQ(typing.filter, "");
  EXPECT_EQ(after("\r", typing).filter, "quit");
  EXPECT_EQ(after("\x7f\x7f\r", typing).filter, "qu");
  EXPECT_EQ(after("\x1b", typing).filter, "");
  EXPECT_EQ(after("\xc3\xa9\x7f\r", typing).filter, "quit");
  EXPECT_EQ(after("/a\r\x1b").filter, "");
  EXPECT_TRUE(after("/a\x03").quit);
  EXPECT_LE(after("/" + std::string(500, 'x') + "\r").filter.size(), 64U);
  EXPECT_TRUE(passes_filter(after("/EXP\r"), "batch-export"));
  EXPECT_FALSE(passes_filter(after("/EXP\r"), "mobile"));
}

TEST_F(UiStateTest, EndsPausesAndHelps) {
  EXPECT_TRUE(after("q").quit);
  EXPECT_TRUE(after("\x03").quit);
  EXPECT_TRUE(after("p").paused);
  EXPECT_FALSE(after("p ").paused);
  EXPECT_TRUE(after("?").help);
  EXPECT_FALSE(after("?2").help);
  EXPECT_TRUE(after("z").whole);
  EXPECT_TRUE(after("\x1a").suspend);
  EXPECT_EQ(after("ssss").sort, 0U);
}

TEST_F(UiStateTest, DrainsOnlyAfterAYesToAQuestion) {
  snapshot_ = sample_snapshot("sick_replica", Page::kReplicas);
  EXPECT_EQ(after("4d").note,
            "this gateway takes no actions: set admin.actions in its configuration");
  snapshot_.actions = "token";
  UiState able;
  EXPECT_EQ(after("4d").note, "actions need the token: weir top --token-file FILE");
  able.has_socket = true;
  EXPECT_EQ(after("4d", able).note, "actions need the token: weir top --token-file FILE");
  snapshot_.actions = "socket";
  EXPECT_EQ(after("4d").note, "actions need the gateway's socket: weir top --admin unix:PATH");
  EXPECT_TRUE(offers_actions(able, snapshot_));
  able = {};
  able.has_token = true;
  EXPECT_EQ(after("4d", able).note,
            "actions need the gateway's socket: weir top --admin unix:PATH");
  EXPECT_FALSE(offers_actions(able, snapshot_));
  snapshot_.actions = "token";
  EXPECT_EQ(after("1d", able).note, "d drains the replica that is chosen on page 4");
  UiState reader = able;
  reader.read_only = true;
  EXPECT_EQ(after("4d", reader).note, "--read-only: no actions");
  EXPECT_EQ(after("4d", reader).drain.step, DrainStep::kNone);

  UiState asked = after("4", able);
  asked.scroll_max = 40;
  asked = after("jjd", asked);
  EXPECT_EQ(asked.drain.step, DrainStep::kAsked);
  EXPECT_EQ(asked.drain.upstream, "app");
  EXPECT_EQ(asked.drain.endpoint, "10.0.0.12:8080");
  EXPECT_EQ(after("y", asked).drain.step, DrainStep::kAsked) << "a yes to no question";
  asked.drain.step = DrainStep::kOffered;
  EXPECT_EQ(after("y", asked).drain.step, DrainStep::kAgreed);
  for (const std::string_view other : {"n", "Y", "\r", "q", "\x1b", "1"}) {
    const UiState left = after(other, asked);
    EXPECT_EQ(left.drain, DrainWish());
    EXPECT_EQ(left.note, "nothing was drained");
    EXPECT_FALSE(left.quit);
  }
  EXPECT_TRUE(after("\x03", asked).quit);
}

TEST_F(UiStateTest, MovesWithinThePage) {
  UiState state;
  state.scroll_max = 20;
  state.page_rows = 10;
  EXPECT_EQ(after("jjj", state).scroll, 3);
  EXPECT_EQ(after("k", state).scroll, 0);
  EXPECT_EQ(after("\x1b[6~", state).scroll, 9);
  EXPECT_EQ(after("\x1b[6~\x1b[6~\x1b[6~", state).scroll, 20);
  EXPECT_EQ(after("\x1b[F\x1b[5~", state).scroll, 11);
  EXPECT_EQ(after("\x1b[F2", state).scroll, 0);
}

TEST_F(UiStateTest, AsksForTheReplicasAroundTheChosenOne) {
  for (const int rows : {5, 20, 60, 96, 200}) {
    UiState state;
    state.page = Page::kReplicas;
    state.scroll_max = 999;
    state.page_rows = rows;
    const int half = std::min(rows, 96) / 2;
    int requests = 0;
    for (int i = 0; i < 999; ++i) {
      const std::string before = live_path(state);
      state = after("j", state);
      requests += live_path(state) != before ? 1 : 0;
      EXPECT_LE(state.replicas_from, std::max(0, state.scroll - half));
      EXPECT_GE(state.replicas_from + kReplicaRows, std::min(1000, state.scroll + half));
    }
    if (rows <= 60) {
      EXPECT_LT(requests, 60) << "not one stream per key";
    }
    EXPECT_EQ(after("\x1b[H", state).replicas_from, 0);
  }
}

}  // namespace
}  // namespace weir::app::top
