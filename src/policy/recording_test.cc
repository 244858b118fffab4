#include "policy/recording.h"

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::inline policy {
namespace {

using std::chrono::milliseconds;

RecordingHeader header() {
  return {.started_unix_us = 1'790'000'000'000'000,
          .capacity = 3,
          .reasons = {"admitted", "overload"},
          .scopes = {{0, "app"}, {7, "reports"}},
          .config = "[admission]\nmax_concurrent = 5\n"};
}

RecordedDecision at(milliseconds when) {
  RecordedDecision decision;
  decision.at = when;
  decision.request = 4;
  decision.actor = 5;
  decision.peer = 6;
  decision.reason = 1;
  return decision;
}

std::string file_of(const std::vector<RecordedDecision>& decisions) {
  std::string file = encode_header(header());
  for (const RecordedDecision& one : decisions) append_decision(file, pack(one));
  return file;
}

Result<Recording, std::string> read(const std::string& file) {
  return read_recording(std::as_bytes(std::span(file)));
}

TEST(Recording, WhatWasWrittenIsReadInTheOrderOfTime) {
  const auto recording =
      read(file_of({at(milliseconds(30)), at(milliseconds(10)), at(milliseconds(20))}));
  ASSERT_TRUE(recording) << recording.error();
  EXPECT_EQ(recording->header, header());
  ASSERT_EQ(recording->decisions.size(), 3U);
  EXPECT_EQ(recording->decisions[0], at(milliseconds(10)));
  EXPECT_EQ(recording->decisions[2], at(milliseconds(30)));
  EXPECT_FALSE(recording->cut);
  EXPECT_EQ(recording->torn, 0U);
}

TEST(Recording, PlacesThatWereNotWrittenAreEmptyAndTornOnesAreCounted) {
  std::string file = file_of({at(milliseconds(10)), at(milliseconds(20))});
  file[file.size() - 3] = static_cast<char>(file[file.size() - 3] ^ 0x55);
  file.append(kDecisionBytes, '\0');
  const auto recording = read(file);
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->decisions.size(), 1U);
  EXPECT_EQ(recording->torn, 1U);
}

TEST(Recording, AReasonThatTheHeaderDoesNotNameIsTorn) {
  RecordedDecision unknown = at(milliseconds(1));
  unknown.reason = 2;
  EXPECT_EQ(read(file_of({unknown}))->torn, 1U);
}

TEST(Recording, AFileThatIsCutOffGivesWhatItHas) {
  const std::string whole =
      file_of({at(milliseconds(1)), at(milliseconds(2)), at(milliseconds(3))});
  const std::size_t head = encode_header(header()).size();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto recording = read(whole.substr(0, size));
    if (size < head) {
      ASSERT_FALSE(recording) << size;
      EXPECT_FALSE(recording.error().empty());
    } else {
      ASSERT_TRUE(recording) << size;
      EXPECT_TRUE(recording->cut);
      EXPECT_EQ(recording->decisions.size(), (size - head) / kDecisionBytes);
    }
  }
}

TEST(Recording, AnyChangedByteOfTheHeaderIsSeen) {
  const std::string whole = file_of({});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(read(changed)) << i;
  }
}

TEST(Recording, GarbageIsRefusedWithASentence) {
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    std::string garbage = i % 2 == 0 ? "" : "WEIRDEC1";
    const std::uint64_t size = rng.below(300);
    for (std::uint64_t b = 0; b < size; ++b) garbage += static_cast<char>(rng.below(256));
    const auto recording = read(garbage);
    ASSERT_FALSE(recording);
    EXPECT_GT(recording.error().size(), 10U);
  }
  EXPECT_NE(read("hello").error().find("no recording"), std::string::npos);
  std::string newer = file_of({});
  newer[8] = 9;
  EXPECT_NE(read(newer).error().find("version 9"), std::string::npos);
}

TEST(Recording, AHeaderStaysWithinItsBound) {
  RecordingHeader large = header();
  large.config.assign(3 * kRecordingHeaderMax, 'x');
  large.scopes.assign(100'000, {1, "a name of a scope"});
  large.reasons.assign(100'000, "a reason");
  const std::string bytes = encode_header(large);
  EXPECT_LE(bytes.size(), kRecordingHeaderMax);
  EXPECT_TRUE(read(bytes));
}

TEST(Recording, TagsOfTwoKeysCannotBeComparedButLinkWithinOne) {
  const SipKey mine{1, 2};
  const RecordedDecision a = with_tags(at(milliseconds(1)), mine);
  const RecordedDecision b = with_tags(at(milliseconds(2)), mine);
  const RecordedDecision other = with_tags(at(milliseconds(1)), {3, 4});
  EXPECT_EQ(a.actor, b.actor);
  EXPECT_EQ(a.peer, b.peer);
  EXPECT_NE(a.actor, other.actor);
  EXPECT_NE(a.request, other.request);
  EXPECT_NE(a.peer, other.peer);
  RecordedDecision nobody;
  nobody = with_tags(nobody, mine);
  EXPECT_EQ(nobody.actor, 0U) << "none stays none";
  EXPECT_EQ(nobody.peer, 0U);
}

}  // namespace
}  // namespace weir::inline v0::inline policy
