#include "weir/base/intrusive_list.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "weir/base/rng.h"

namespace weir {
namespace {

struct Item {
  explicit Item(int n) : number(n) {}
  int number;
  ListHook<Item> hook;
  ListHook<Item> other_hook;
};
using Items = IntrusiveList<Item, &Item::hook>;

std::vector<int> numbers(const Items& list) {
  std::vector<int> out;
  for (const Item& item : list) out.push_back(item.number);
  return out;
}

TEST(IntrusiveList, KeepsOrder) {
  Item a(1);
  Item b(2);
  Item c(3);
  Item d(4);
  Items list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  list.push_back(b);
  list.push_back(d);
  list.push_front(a);
  list.insert_before(d, c);
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(list.size(), 4U);
  EXPECT_EQ(list.front(), &a);
  EXPECT_EQ(list.back(), &d);
  EXPECT_EQ(list.next(b), &c);
  EXPECT_EQ(list.previous(b), &a);
  EXPECT_EQ(list.next(d), nullptr);
}

TEST(IntrusiveList, RemovesFromAnywhere) {
  Item a(1);
  Item b(2);
  Item c(3);
  Items list;
  list.push_back(a);
  list.push_back(b);
  list.push_back(c);
  EXPECT_TRUE(b.hook.linked());
  list.remove(b);
  EXPECT_FALSE(b.hook.linked());
  EXPECT_EQ(numbers(list), (std::vector{1, 3}));
  EXPECT_EQ(list.pop_back(), &c);
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_EQ(list.pop_front(), nullptr);
  EXPECT_TRUE(list.empty());
  list.push_back(b);  // a hook is reusable
  EXPECT_EQ(numbers(list), (std::vector{2}));
}

TEST(IntrusiveList, ElementMayBeInTwoListsByTwoHooks) {
  Item a(1);
  Items list;
  IntrusiveList<Item, &Item::other_hook> other;
  list.push_back(a);
  other.push_back(a);
  list.remove(a);
  EXPECT_EQ(other.front(), &a);
  EXPECT_TRUE(other.contains(a));
  EXPECT_FALSE(list.contains(a));
}

TEST(IntrusiveList, ListThatDiesUnlinksItsElements) {
  Item a(1);
  {
    Items list;
    list.push_back(a);
  }
  EXPECT_FALSE(a.hook.linked());
}

TEST(IntrusiveList, RemovalBehindTheIteratorIsFine) {
  std::vector<std::unique_ptr<Item>> items;
  Items list;
  for (int i = 0; i < 10; ++i) list.push_back(*items.emplace_back(std::make_unique<Item>(i)));
  for (auto it = list.begin(); it != list.end();) {
    Item& item = *it++;
    if (item.number % 3 != 0) list.remove(item);
  }
  EXPECT_EQ(numbers(list), (std::vector{0, 3, 6, 9}));
  list.clear();
}

TEST(IntrusiveList, AgreesWithAListUnderRandomUse) {
  Rng rng(41);
  std::vector<std::unique_ptr<Item>> items;
  items.reserve(24);
  for (int i = 0; i < 24; ++i) items.push_back(std::make_unique<Item>(i));
  Items list;
  std::list<int> model;
  for (int step = 0; step < 20'000; ++step) {
    Item& item = *items[rng.below(items.size())];
    if (item.hook.linked()) {
      list.remove(item);
      model.remove(item.number);
    } else if (rng.chance(0.5)) {
      list.push_back(item);
      model.push_back(item.number);
    } else {
      list.push_front(item);
      model.push_front(item.number);
    }
    ASSERT_EQ(list.size(), model.size());
    ASSERT_TRUE(std::equal(list.begin(), list.end(), model.begin(), model.end(),
                           [](const Item& a, int b) { return a.number == b; }));
  }
  list.clear();
}

TEST(IntrusiveListDeathTest, BrokenPromisesAbort) {
  Item a(1);
  Item b(2);
  Items list;
  Items stranger;
  list.push_back(a);
  EXPECT_DEATH(list.push_back(a), "WEIR_ASSERT");
  EXPECT_DEATH(stranger.push_front(a), "WEIR_ASSERT");
  EXPECT_DEATH(stranger.remove(a), "WEIR_ASSERT");
  EXPECT_DEATH(list.remove(b), "WEIR_ASSERT");
  EXPECT_DEATH(list.insert_before(b, b), "WEIR_ASSERT");
  EXPECT_DEATH(
      {
        Item dies(3);
        list.push_back(dies);
      },
      "WEIR_ASSERT");
  list.clear();
}

}  // namespace
}  // namespace weir
