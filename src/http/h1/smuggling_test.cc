// Runs tests/corpus/h1_smuggling/requests.txt; the README in that folder describes the format.

#include <charconv>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

struct Vector {
  std::string name;
  std::string bytes;
  std::vector<std::string> wants;
};

/// Expands `\{TEXT*N}`; `at` is behind the opening brace and moves behind the closing one.
std::string repeated(std::string_view text, std::size_t& at);

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\') {
      out += c;
      continue;
    }
    const char kind = text.at(at++);
    constexpr std::string_view kKinds = "rnt0\\";
    constexpr std::string_view kBytes("\r\n\t\0\\", 5);
    if (const std::size_t simple = kKinds.find(kind); simple != std::string_view::npos) {
      out += kBytes[simple];
    } else if (kind == 'x') {
      unsigned value = 0;
      std::from_chars(text.data() + at, text.data() + at + 2, value, 16);
      out += static_cast<char>(value);
      at += 2;
    } else if (kind == '{') {
      out += repeated(text, at);
    } else {
      ADD_FAILURE() << "unknown escape in " << text;
    }
  }
  return out;
}

std::string repeated(std::string_view text, std::size_t& at) {
  const std::size_t close = text.find('}', at);
  const std::size_t star = text.rfind('*', close);
  std::size_t count = 0;
  std::from_chars(text.data() + star + 1, text.data() + close, count);
  const std::string piece = unescaped(text.substr(at, star - at));
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += piece;
  at = close + 1;
  return out;
}

std::vector<Vector> load() {
  std::vector<Vector> vectors;
  std::ifstream file(WEIR_H1_SMUGGLING_VECTORS);
  EXPECT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::string key = line.substr(0, 6);
    const std::string value = line.size() > 6 ? line.substr(6) : "";
    if (key == "name: ") {
      vectors.push_back({value, {}, {}});
    } else if (key == "send: ") {
      vectors.back().bytes += unescaped(value);
    } else if (key == "want: ") {
      vectors.back().wants.push_back(value);
    } else {
      ADD_FAILURE() << "what is " << line;
    }
  }
  return vectors;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// The transcript in the notation of the corpus.
std::vector<std::string> understood(const RequestTranscript& transcript) {
  std::vector<std::string> lines;
  for (const SeenMessage& m : transcript.messages()) {
    if (!m.complete && !m.tunnel) continue;
    std::string line = (m.tunnel ? "tunnel " : "request ") + m.method + " " + m.authority;
    if (!m.path.empty()) line += " " + m.path;
    if (!m.body.empty()) line += " " + escaped(m.body);
    lines.push_back(line);
  }
  if (transcript.error() != ParseError::kNone) {
    lines.push_back("error " + std::to_string(status_of(transcript.error())) + " " +
                    std::string(to_string(transcript.error())));
  } else if (!transcript.stopped() &&
             (!transcript.left_over().empty() || transcript.messages().empty() ||
              !transcript.messages().back().complete)) {
    lines.emplace_back("waiting");
  }
  return lines;
}

TEST(Smuggling, EveryVectorHasItsAnswer) {
  for (const Vector& vector : load()) {
    RequestTranscript whole;
    whole.feed(vector.bytes);
    EXPECT_EQ(understood(whole), vector.wants) << vector.name;
    RequestTranscript slow;
    byte_by_byte(slow, vector.bytes);
    EXPECT_EQ(understood(slow), vector.wants) << vector.name << ", byte by byte";
    EXPECT_EQ(slow.text(), whole.text()) << vector.name;
  }
}

TEST(Smuggling, TheCorpusIsWholeAndItsNamesAreUnique) {
  const std::vector<Vector> vectors = load();
  EXPECT_GE(vectors.size(), 140U);
  std::set<std::string> names;
  std::set<std::string> reasons;
  for (const Vector& vector : vectors) {
    EXPECT_TRUE(names.insert(vector.name).second) << vector.name;
    EXPECT_FALSE(vector.bytes.empty()) << vector.name;
    EXPECT_FALSE(vector.wants.empty()) << vector.name;
    for (const std::string& want : vector.wants)
      if (want.starts_with("error ")) reasons.insert(want.substr(10));
  }
  // The corpus has every error of a request; the others concern responses or the end of input.
  const std::set<ParseError> elsewhere = {ParseError::kBadStatusLine, ParseError::kBadStatusCode,
                                          ParseError::kTruncated, ParseError::kTooManyInformational,
                                          ParseError::kUnexpectedSwitch};
  for (unsigned i = 1; i < static_cast<unsigned>(ParseError::kCount); ++i) {
    const auto error = static_cast<ParseError>(i);
    EXPECT_EQ(reasons.count(std::string(to_string(error))), elsewhere.count(error) == 0 ? 1U : 0U)
        << to_string(error);
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h1
