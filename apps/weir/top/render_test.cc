#include "render.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

#include "frame_writer.h"
#include "text.h"
#include "top_testing.h"

namespace weir::app::top {
namespace {

constexpr Page kAllPages[] = {Page::kNow,      Page::kRefusals, Page::kLimit,
                              Page::kReplicas, Page::kMemory,   Page::kEvents};
constexpr ScreenSize kSizes[] = {{80, 24}, {120, 40}, {200, 60}, {40, 10}};

Link good_link() {
  Link link;
  link.address = "127.0.0.1:9901";
  return link;
}

/// Nothing in it is obeyed by a terminal: no control characters of either set.
bool is_inert(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const char32_t point = next_point(text, at);
    const bool turns = point >= 0x202A && point <= 0x202E;
    if (point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xFFFD || turns) return false;
  }
  return true;
}

std::string title_of(Page page, ScreenSize size) {
  return "==== " + std::string(facts_of(page).title) + " " + std::to_string(size.cols) + "x" +
         std::to_string(size.rows) + "\n";
}

std::string picture(const std::string& name, Page page, ScreenSize size, const Link& link) {
  UiState ui;
  ui.page = page;
  const Frame frame = render(sample_snapshot(name, page), ui, link, size);
  return title_of(page, size) + as_text(frame, {}, false);
}

/// golden/<name>.txt; with WEIR_WRITE_GOLDEN in the environment it is written instead.
void expect_golden(const std::string& name, const std::string& is) {
  const std::string path = std::string(WEIR_TOP_DIR) + "/golden/" + name + ".txt";
  if (std::getenv("WEIR_WRITE_GOLDEN") != nullptr) std::ofstream(path) << is;
  std::ifstream file(path);
  std::stringstream want;
  want << file.rdbuf();
  EXPECT_EQ(is, want.str()) << path << ": WEIR_WRITE_GOLDEN=1 writes it anew";
}

TEST(TopRender, ShowsAnOverloadOnEveryPageInEverySize) {
  std::string all;
  for (const ScreenSize size : kSizes) {
    for (const Page page : kAllPages) all += picture("overloaded", page, size, good_link());
  }
  expect_golden("overloaded", all);
}

TEST(TopRender, ShowsOtherStatesOnEveryPage) {
  for (const std::string name : {"idle", "sick_replica", "hostile"}) {
    std::string all;
    for (const Page page : kAllPages) all += picture(name, page, {80, 24}, good_link());
    expect_golden(name, all);
  }
}

TEST(TopRender, SaysThatWhatItShowsIsOld) {
  Link link = good_link();
  link.stale = true;
  link.silent_s = 12;
  link.trouble = "connection refused";
  link.again_in_s = 3.5;
  expect_golden("stale", picture("overloaded", Page::kNow, {80, 24}, link));
}

TEST(TopRender, ExplainsItsKeys) {
  UiState ui;
  ui.help = true;
  const Frame frame = render(sample_snapshot("idle", Page::kNow), ui, good_link(), {80, 24});
  expect_golden("help", as_text(frame, {}, false));
}

TEST(TopRender, PutsTheVerdictAndTheNextStepFirst) {
  const Frame frame =
      render(sample_snapshot("overloaded", Page::kNow), UiState(), good_link(), {80, 24});
  EXPECT_EQ(frame.lines[0].plain().substr(0, 54),
            "OVERLOADED 41 s: more is asked than the service can do");
  EXPECT_EQ(frame.lines[1].plain().substr(0, 18), "next: add capacity");
}

TEST(TopRender, FillsTheScreenExactlyWhateverItIsTold) {
  for (const std::string name : {"overloaded", "idle", "sick_replica", "hostile"}) {
    for (const Page page : kAllPages) {
      const Snapshot snapshot = sample_snapshot(name, page);
      for (int cols = 1; cols <= 210; cols += cols < 60 ? 1 : 7) {
        for (const int rows : {1, 2, 5, 10, 24, 60}) {
          UiState ui;
          ui.page = page;
          const Frame frame = render(snapshot, ui, good_link(), {cols, rows});
          ASSERT_EQ(static_cast<int>(frame.lines.size()), rows);
          for (const Line& line : frame.lines) {
            ASSERT_LE(line.width(), cols) << name << " " << line.plain();
            ASSERT_EQ(line.width(), cells(line.plain()));
            ASSERT_TRUE(is_inert(line.plain())) << "a terminal would obey it";
          }
        }
      }
    }
  }
}

/// Any JSON of this shape, with members of all types.
nlohmann::json mutated(const nlohmann::json& json, Rng& rng) {
  if (rng.below(40) == 0) {
    const nlohmann::json kStrange[] = {nullptr,
                                       -1,
                                       1e308,
                                       "",
                                       "\x1b[2J",
                                       true,
                                       nlohmann::json::array(),
                                       nlohmann::json::object(),
                                       12345678901234567890ULL,
                                       "支付服务支付服务支付服务支付服务"};
    return kStrange[rng.below(10)];
  }
  if (json.is_array() || json.is_object()) {
    nlohmann::json out = json;
    for (auto& one : out) one = mutated(one, rng);
    return out;
  }
  return json;
}

TEST(TopRender, KeepsToItsWidthForAnySnapshot) {
  Rng rng(20261119);
  for (int round = 0; round < 60; ++round) {
    const std::string names[] = {"overloaded", "idle", "sick_replica", "hostile"};
    nlohmann::json messages = sample(names[rng.below(4)]);
    for (auto& part : messages) part = mutated(part, rng);
    const Page page = kAllPages[rng.below(6)];
    for (auto& part : messages) {
      if (!part.is_object()) part = nlohmann::json::object();
    }
    if (!messages["tick"]["memory"].is_object())
      messages["tick"]["memory"] = nlohmann::json::object();
    const Snapshot snapshot = snapshot_of(messages, page);
    UiState ui;
    ui.page = page;
    ui.whole = rng.below(2) == 0;
    ui.scroll = static_cast<int>(rng.below(50));
    const ScreenSize size{static_cast<int>(rng.below(220)) + 1,
                          static_cast<int>(rng.below(70)) + 1};
    const Frame frame = render(snapshot, ui, good_link(), size);
    ASSERT_EQ(static_cast<int>(frame.lines.size()), size.rows);
    for (const Line& line : frame.lines) {
      ASSERT_LE(line.width(), size.cols);
      ASSERT_TRUE(is_inert(line.plain()));
      ASSERT_EQ(cells(line.in_ascii().plain()), line.width());
    }
  }
}

TEST(TopRender, HasNothingButAsciiWhereTheTerminalHas) {
  for (const Page page : kAllPages) {
    UiState ui;
    ui.page = page;
    const Frame frame = render(sample_snapshot("overloaded", page), ui, good_link(), {120, 40});
    const std::string text = as_text(frame, {.colour = true, .utf8 = false}, true);
    for (const char c : text) ASSERT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

TEST(TopRender, TellsOfOverridesPausesAndNotes) {
  const Snapshot sick = sample_snapshot("sick_replica", Page::kNow);
  UiState ui;
  const auto banner = [&](const Snapshot& snapshot) {
    return render(snapshot, ui, good_link(), {80, 24}).lines[3].plain();
  };
  EXPECT_EQ(banner(sick), "1 override: drain app 10.0.0.9:8080, 19 min left");
  ui.note = "there is one upstream only";
  EXPECT_EQ(banner(sick), "there is one upstream only");
  ui.paused = true;
  EXPECT_EQ(banner(sick).substr(0, 18), "PAUSED: p goes on ");
}

TEST(TopRender, AsksBeforeItDrains) {
  Snapshot snapshot = sample_snapshot("sick_replica", Page::kReplicas);
  snapshot.actions = "socket";
  UiState ui;
  ui.page = Page::kReplicas;
  EXPECT_EQ(render(snapshot, ui, good_link(), {80, 24}).lines[23].plain().substr(0, 9),
            "1-6 page ");
  ui.has_socket = true;
  EXPECT_EQ(render(snapshot, ui, good_link(), {80, 24}).lines[23].plain().substr(0, 9),
            "d drain  ");
  ui.drain = {.step = DrainStep::kOffered,
              .upstream = "app",
              .endpoint = "10.0.0.7:8080",
              .outcome = "38 of 41 remain"};
  EXPECT_EQ(
      render(snapshot, ui, good_link(), {80, 24}).lines[3].plain(),
      "y drains 10.0.0.7:8080, any other key does not: 38 of 41 remain" + std::string(17, ' '));
  ui.read_only = true;
  EXPECT_EQ(render(snapshot, ui, good_link(), {80, 24}).lines[23].plain().substr(0, 8), "1-6 page");
}

TEST(TopRender, ScrollsAPageThatIsLongerThanTheScreen) {
  const Snapshot snapshot = sample_snapshot("overloaded", Page::kMemory);
  UiState ui;
  ui.page = Page::kMemory;
  const Frame at_top = render(snapshot, ui, good_link(), {80, 12});
  EXPECT_GT(at_top.scroll_max, 5);
  ui.scroll = at_top.scroll_max;
  const Frame at_end = render(snapshot, ui, good_link(), {80, 12});
  EXPECT_NE(at_end.lines[10].plain().find("64 MiB less"), std::string::npos);
}

TEST(TopRender, KeepsTheChosenReplicaOnTheScreen) {
  const Snapshot snapshot = sample_snapshot("sick_replica", Page::kReplicas);
  UiState ui;
  ui.page = Page::kReplicas;
  for (ui.scroll = 0; ui.scroll <= 40; ++ui.scroll) {
    const Frame frame = render(snapshot, ui, good_link(), {100, 20});
    EXPECT_EQ(frame.scroll_max, 40);
    int marked = 0;
    for (std::size_t i = 4; i < frame.lines.size(); ++i) {
      const auto& spans = frame.lines[i].spans();
      if (spans.size() != 1 || spans[0].style != Style::kMarked) continue;
      ++marked;
      const Replica& chosen =
          snapshot.replicas.known.at(snapshot.replicas.order[static_cast<std::size_t>(ui.scroll)]);
      EXPECT_EQ(spans[0].text.substr(0, chosen.endpoint.size()), chosen.endpoint);
    }
    EXPECT_EQ(marked, 1);
  }
}

}  // namespace
}  // namespace weir::app::top
