#include "http/h2/stream_table.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir::inline v0::http::h2 {
namespace {

struct Table {
  explicit Table(std::uint32_t streams)
      : words(StreamTable::bytes_for(streams) / 8 + 1), table(words.data(), streams) {}
  std::vector<std::uint64_t> words;
  StreamTable table;
};

TEST(StreamTable, FindsWhatIsOpenAndNothingElse) {
  Table t(4);
  Stream* one = t.table.open(1);
  Stream* five = t.table.open(5);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(t.table.find(1), one);
  EXPECT_EQ(t.table.find(5), five);
  EXPECT_EQ(t.table.find(3), nullptr);
  t.table.close(*one);
  EXPECT_EQ(t.table.find(1), nullptr);
  EXPECT_EQ(t.table.size(), 1U);
}

TEST(StreamTable, SaysNoWhenFullAndReusesPlaces) {
  Table t(2);
  Stream* a = t.table.open(1);
  ASSERT_NE(t.table.open(3), nullptr);
  EXPECT_EQ(t.table.open(5), nullptr);
  a->received = 17;
  t.table.close(*a);
  Stream* b = t.table.open(7);
  ASSERT_EQ(b, a);
  EXPECT_EQ(b->received, 0U) << "fresh";
}

TEST(StreamTable, AgreesWithAMapUnderRandomTraffic) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    Table t(37);
    std::map<StreamId, Stream*> truth;
    StreamId next = 1;
    for (int step = 0; step < 5000; ++step) {
      if (rng.below(2) == 0) {
        // Skipped numbers make the hash collide.
        next += 2 * static_cast<StreamId>(1 + (rng.below(10) == 0 ? rng.below(500) : 0));
        Stream* stream = t.table.open(next);
        ASSERT_EQ(stream != nullptr, truth.size() < 37);
        if (stream != nullptr) truth[next] = stream;
      } else if (!truth.empty()) {
        auto it = truth.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(rng.below(truth.size())));
        t.table.close(*it->second);
        truth.erase(it);
      }
      for (const auto& [id, stream] : truth) ASSERT_EQ(t.table.find(id), stream);
      ASSERT_EQ(t.table.size(), truth.size());
    }
    std::size_t seen = 0;
    t.table.for_each([&](Stream& stream) { seen += truth.count(stream.id); });
    EXPECT_EQ(seen, truth.size());
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h2
