#include "config/toml_reader.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"
#include "weir/experimental/config/load.h"
#include "weir/experimental/config/print.h"

namespace weir::config {
namespace {

TEST(TomlReader, GivesSectionsAndEntriesWithTheirLines) {
  const RawConfig raw = read_toml(
      "[a]\n"
      "x = 1\n"
      "\n"
      "[a.b]\n"
      "y = [\"p\", 2.5, true]\n"
      "[[c]]\n"
      "[[c]]\n"
      "z = 1979-05-27\n",
      "f.toml");
  ASSERT_TRUE(raw.syntax.empty());
  ASSERT_EQ(raw.entries.size(), 3U);
  EXPECT_EQ(raw.entries[0].section, "a");
  EXPECT_EQ(raw.entries[0].name, "x");
  EXPECT_EQ(raw.entries[0].index, -1);
  EXPECT_EQ(raw.entries[0].line, 2);
  EXPECT_EQ(raw.entries[1].section, "a.b");
  EXPECT_EQ(to_text(raw.entries[1].value), "[\"p\", 2.5, true]");
  EXPECT_EQ(raw.entries[2].section, "c");
  EXPECT_EQ(raw.entries[2].index, 1);
  EXPECT_EQ(raw.entries[2].line, 8);
  EXPECT_EQ(to_text(raw.entries[2].value), "a date or time");
  ASSERT_EQ(raw.sections.size(), 4U);
  EXPECT_EQ(raw.sections[2].name, "c");
  EXPECT_EQ(raw.sections[2].index, 0);
  EXPECT_EQ(raw.sections[2].line, 6);
}

TEST(TomlReader, InlineTablesAreSections) {
  const RawConfig raw = read_toml("a = {x = 1}\n", "f.toml");
  ASSERT_EQ(raw.entries.size(), 1U);
  EXPECT_EQ(raw.entries[0].section, "a");
  EXPECT_EQ(raw.entries[0].name, "x");
}

TEST(TomlReader, ASyntaxErrorHasItsLine) {
  const RawConfig raw = read_toml("[a]\nx = 1\ny = = 2\n", "f.toml");
  ASSERT_EQ(raw.syntax.size(), 1U);
  EXPECT_EQ(raw.syntax[0].file, "f.toml");
  EXPECT_EQ(raw.syntax[0].line, 3);
  EXPECT_FALSE(raw.syntax[0].value.empty());
  EXPECT_TRUE(raw.entries.empty());
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts = {print_defaults(), "", "[[upstream]]\nname = \"a\"\n",
                                    "a.b.c = {d = [[1], {e = 2}]}\n[x]\n[[x.y]]\n"};
  for (const char* name : {"minimal", "gate", "manager", "worker"}) {
    std::ifstream file(std::string(WEIR_EXAMPLES_DIR "/") + name + ".toml");
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

std::string mutated(Rng& rng, std::string text, const std::vector<std::string>& texts) {
  static constexpr std::string_view kBytes = "[]{}=\"'\\.,#\n\r\t 0123456789eE+-_xuU\x80\xff\xc3";
  for (std::uint64_t edits = 1 + rng.below(6); edits > 0; --edits) {
    const std::size_t at = rng.below(text.size() + 1);
    switch (rng.below(5)) {
      case 0:
        text.insert(at, 1, kBytes[rng.below(kBytes.size())]);
        break;
      case 1:
        text.erase(at, rng.below(8));
        break;
      case 2:
        text.insert(at, text.substr(rng.below(text.size() + 1), rng.below(40)));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
        break;
      default:
        text += texts[rng.below(texts.size())].substr(0, rng.below(200));
        break;
    }
  }
  return text;
}

// The reader and the code after it must fail only by returning an error.
TEST(TomlReader, RandomAndMutatedTextNeverCrashes) {
  const std::vector<std::string> texts = corpus();
  Rng rng(2026);
  int loaded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[rng.below(texts.size())];
    if (text.size() > 600) {
      const std::size_t start = text.find('\n', rng.below(text.size()));
      text = text.substr(start == std::string::npos ? 0 : start, 600);
    }
    const LoadedConfig result = load_config(mutated(rng, std::move(text), texts), "fuzz.toml");
    for (const ConfigError& error : result.errors) ASSERT_FALSE(to_text(error).empty());
    loaded += result.ok() ? 1 : 0;
  }
  EXPECT_GT(loaded, 0) << "the mutations reach past the parser";
}

TEST(TomlReader, DeepNestingIsAnErrorNotAStackOverflow) {
  const std::string deep = "x = " + std::string(100000, '[');
  EXPECT_FALSE(read_toml(deep, "deep.toml").syntax.empty());
  for (const char* part : {".a", " . a", ".\"a\"", ".'a,b'"}) {
    std::string key = "a";
    for (int i = 0; i < 100000; ++i) key += part;
    for (const std::string& text : {"[" + key + "]\n", key + " = 1\n", "x = {" + key + " = 1}\n"}) {
      const RawConfig raw = read_toml("\n" + text, "deep.toml");
      ASSERT_EQ(raw.syntax.size(), 1U);
      EXPECT_EQ(raw.syntax[0].line, 2);
    }
  }
}

TEST(TomlReader, LongListsAndTextsAreNotTakenForDeepKeys) {
  std::string list = "x = [\"10.0.0.1:80\"";
  for (int i = 0; i < 1000; ++i) list += ", \"10.0.0.1:80\"";
  EXPECT_TRUE(read_toml(list + "]\n", "f.toml").syntax.empty());
  EXPECT_TRUE(read_toml("x = \"" + std::string(500, '.') + "\"\n", "f.toml").syntax.empty());
}

TEST(TomlReader, LettersOutsideOfAsciiAreReadOrRefused) {
  EXPECT_EQ(read_toml("[a]\nä = 1\n", "f.toml").syntax.at(0).line, 2);
  EXPECT_EQ(read_toml("x = 1979-05-27Tп\n", "f.toml").syntax.size(), 1U);
  const RawConfig raw = read_toml("\"ä\" = \"\"\"a\\\n  ä\"\"\" # п\n", "f.toml");
  ASSERT_EQ(raw.entries.size(), 1U);
  EXPECT_EQ(to_text(raw.entries[0].value), "\"aä\"");
}

// toml++ 3.3 aborts the process at a section header without a name.
TEST(TomlReader, AHeaderThatTheLibraryTripsOverIsAnErrorWithItsLine) {
  for (const std::string bad : {"[\n", "[\t=", "[ \n", "[[\n"}) {
    const RawConfig raw = read_toml("[a]\nx = 1\n" + bad + "\n[b]\n", "f.toml");
    ASSERT_EQ(raw.syntax.size(), 1U) << bad;
    EXPECT_EQ(raw.syntax[0].line, 3) << bad;
  }
  EXPECT_EQ(read_toml("x = 1\n[\t=", "f.toml").syntax.at(0).line, 2) << "no newline at the end";
}

}  // namespace
}  // namespace weir::config
