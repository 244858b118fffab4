#include "weir/experimental/sim/simulate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenario_test_support.h"

namespace weir::sim {
namespace {

struct Outcome3 {
  int status = 0;
  std::string out;
  std::string err;
};

Outcome3 run(const SimulateOptions& options, bool clock = false) {
  std::ostringstream out;
  std::ostringstream err;
  double now = 0;
  SimulateShell shell{out, err, {}, clock};
  if (clock) shell.wall_seconds = [&now] { return now += 0.2; };
  const int status = simulate(options, shell);
  return {status, out.str(), err.str()};
}

class Simulate : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("weir-simulate-") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  std::filesystem::path folder_;
};

const std::string kGood =
    std::string(kPlain) + "[[verdict]]\nname = \"some\"\nmeasure = \"goodput\"\nmin = 100\n";
const std::string kBad =
    std::string(kPlain) + "[[verdict]]\nname = \"much\"\nmeasure = \"goodput\"\nmin = 100000\n";

TEST_F(Simulate, ZeroWhenAllVerdictsHoldOneWhenOneFails) {
  const std::string good = write("good.toml", kGood);
  const std::string bad = write("bad.toml", kBad);
  EXPECT_EQ(run({.files = {good}}).status, 0);
  const Outcome3 failed = run({.files = {good, bad}, .assignments = {"seed=9"}});
  EXPECT_EQ(failed.status, 1);
  EXPECT_NE(failed.out.find("FAIL much"), std::string::npos);
  EXPECT_NE(failed.out.find("weir simulate " + bad + " --set seed=9"), std::string::npos);
}

TEST_F(Simulate, AFolderIsListed) {
  const std::string b = write("b.toml", "name = \"Bees\"\n" + kGood);
  const std::string a = write("a.toml", "name = \"Ants\"\n" + kBad);
  write("notes.txt", "no scenario");
  const Outcome3 listed = run({.files = {folder_.string()}});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_LT(listed.out.find("Ants"), listed.out.find("Bees"));
  EXPECT_NE(listed.out.find(a), std::string::npos);
  EXPECT_EQ(std::count(listed.out.begin(), listed.out.end(), '\n'), 2);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_EQ(run({.files = {(folder_ / "empty").string()}}).status, 2);
}

TEST_F(Simulate, TwoForBadInputWithFileLineKeyAndAllowedValues) {
  const std::string typo = write("typo.toml", std::string(kPlain) + "rte = 5\n");
  const Outcome3 result = run({.files = {typo}});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find(typo + ":13: load.web.rte"), std::string::npos);
  EXPECT_NE(result.err.find("rate"), std::string::npos);
  EXPECT_EQ(run({.files = {(folder_ / "none.toml").string()}}).status, 2);
  EXPECT_EQ(run({.files = {folder_.string()}}).status, 2);
  EXPECT_EQ(run({}).status, 2);
  EXPECT_EQ(run({.files = {write("g.toml", kGood)}, .compare = {"best"}}).status, 2);
  EXPECT_EQ(run({.files = {write("g.toml", kGood)}, .assignments = {"load.x.rate=1"}}).status, 2);
}

TEST_F(Simulate, JsonHoldsOneReportPerRun) {
  const std::string good = write("good.toml", kGood);
  const Outcome3 result = run({.files = {good, good}, .json = true}, true);
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_GT(json[0]["run"]["requests_per_second"], 0);
  EXPECT_EQ(json[0]["digest"], json[1]["digest"]);
}

// The exact output for a user: a report, a comparison and JSON with its series, over all kinds of
// service times. g++ and clang run this test, and the FNV-1a digest is recorded here.
TEST_F(Simulate, TheOutputIsTheSameBytesWithEveryCompiler) {
  const std::string file = write("all.toml", kGood);
  std::string output;
  for (const char* time :
       {"7ms", R"({ kind = "uniform", min = "5ms", max = "15ms" })",
        R"({ kind = "exponential", mean = "10ms" })",
        R"({ kind = "lognormal", median = "8ms", sigma = 0.7 })",
        R"({ kind = "bimodal", fast = "5ms", slow = "90ms", slow_share = 0.05 })",
        R"({ kind = "pareto", min = "4ms", alpha = 1.7, max = "1s" })",
        R"({ kind = "empirical", min = "2ms", p50 = "7ms", p99 = "80ms", max = "200ms" })"}) {
    const std::vector<std::string> set = {"duration=5s", std::string("service.api.time=") + time};
    output += run({.files = {file}, .assignments = set, .json = true, .series = true}).out;
    output += run({.files = {file}, .assignments = set}).out;
    output += run({.files = {file}, .assignments = set, .compare = {"vegas", "gradient2"}}).out;
  }
  for (std::size_t at = output.find(file); at != std::string::npos; at = output.find(file)) {
    output.erase(at, file.size());  // the path of the file is not part of the run
  }
  std::uint64_t digest = 0xCBF29CE484222325U;
  for (const char c : output) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  EXPECT_GT(output.size(), 100'000U);
  EXPECT_EQ(digest, 0x7ec906d507645ef4U) << std::hex << digest;
}

TEST_F(Simulate, CompareShowsOneRowPerLimiterAndIsJudgedByTheLast) {
  const std::string file = write("c.toml", std::string(kPlain) +
                                               "[[verdict]]\nname = \"calm\"\nmeasure = "
                                               "\"dispatch_p99\"\nfrom = \"5s\"\nmax = \"90ms\"\n");
  const Outcome3 good = run({.files = {file}, .compare = {"vegas", "fixed:300", "auto"}});
  EXPECT_EQ(good.status, 0) << good.out;
  for (const char* part : {"vegas", "fixed:300", "auto", "0/1  calm", "1/1  -"}) {
    EXPECT_NE(good.out.find(part), std::string::npos) << part << good.out;
  }
  EXPECT_EQ(run({.files = {file}, .compare = {"auto", "fixed:300"}}).status, 1);
}

TEST_F(Simulate, WritesAPicturePerRun) {
  const std::string good = write("good.toml", kGood);
  EXPECT_EQ(run({.files = {good}, .plot = (folder_ / "p.svg").string()}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "p.svg"));
  EXPECT_EQ(
      run({.files = {good}, .compare = {"vegas", "auto"}, .plot = (folder_ / "q.svg").string()})
          .status,
      0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "q-vegas.svg"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "q-auto.svg"));
  EXPECT_EQ(run({.files = {good}, .plot = "/nowhere/at/all.svg"}).status, 2);
}

TEST_F(Simulate, SearchJudgesTheLimiterByTheBestFixedLimit) {
  const std::string good = write("good.toml", kGood);
  const std::vector<std::string> set = {"duration=8s", "settle=4s"};
  const Outcome3 result = run({.files = {good}, .assignments = set, .search_fixed = true});
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_NE(result.out.find("best fixed limit"), std::string::npos);
  // Eight workers with a limit of 300: the same goodput, but high latency.
  std::vector<std::string> wrong = set;
  wrong.emplace_back("service.api.admission.limit.policy=fixed");
  wrong.emplace_back("service.api.admission.limit.initial_limit=300");
  const Outcome3 failed = run({.files = {good}, .assignments = wrong, .search_fixed = true});
  EXPECT_EQ(failed.status, 1) << failed.out;
  EXPECT_NE(failed.out.find("FAIL p99 from dispatch"), std::string::npos) << failed.out;
}

TEST_F(Simulate, ALongRunShowsProgressOnTheTerminalOnly) {
  const std::string good = write("good.toml", kGood);
  const Outcome3 shown = run({.files = {good}}, true);
  EXPECT_NE(shown.err.find(" %, "), std::string::npos);
  EXPECT_EQ(run({.files = {good}}).err, "");
  EXPECT_EQ(run({.files = {good}}).out, shown.out);  // the report does not depend on the clock
}

TEST_F(Simulate, ATraceIsFoundBesideItsScenario) {
  write("day.csv", "0.5,high,ann,10,1\n0.6,low,bob,10,1\n");
  const std::string file =
      write("trace.toml",
            "duration = \"2s\"\n[[service]]\nname = \"s\"\nworkers = 1\ntime = \"1ms\"\n"
            "[service.admission]\n[[load]]\nname = \"t\"\nto = \"s\"\narrivals = "
            "\"trace\"\nfile = \"day.csv\"\n");
  const Outcome3 result = run({.files = {file}});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("2 calls: 2 ok"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace weir::sim
