// Clients that invent actor names: a million of them, or one name of a megabyte.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/control/admission_controller.h"

#include "admission_testing.h"
#include "base/allocation_probe.h"

namespace weir::inline v0::inline control {
namespace {

AdmissionRequest from_actor(const AdmissionController& controller, std::string_view name) {
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify(name);
  return request;
}

TEST(HostileActors, AMillionNamesLeaveMemoryFlatAndHonestActorsServed) {
  constexpr int kNames = rounds(1'000'000);
  AdmissionController controller(plain_config(1024), Rng(1));
  // Honest actors hold a request all the time, so their entries must not be replaced.
  std::vector<Permit> honest;
  for (int i = 0; i < 100; ++i) {
    honest.push_back(
        controller.try_admit(from_actor(controller, "honest-" + std::to_string(i)), kStart)
            .value());
  }
  std::string name = "stranger-0000000";
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < kNames; ++i) {
    for (std::size_t digit = name.size(); ++name[--digit] > '9';) name[digit] = '0';
    auto permit = controller.try_admit(from_actor(controller, name), kStart);
    ASSERT_TRUE(permit.has_value()) << i;  // entries that hold nothing are replaced
    std::move(*permit).finish(Outcome::kOk, kStart);
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_LE(controller.stats().actors, controller.config().actor_table_size);
  for (int i = 0; i < 100; ++i) {
    const std::vector<Permit> more =
        admit_all(controller, from_actor(controller, "honest-" + std::to_string(i)), 100);
    EXPECT_EQ(more.size(), 15U);  // the one from before is still charged
  }
}

// A million names that each keep one request in flight would occupy entries. The limit stops them
// long before the table is full, and the rest is refused by the limit, not for lack of entries.
TEST(HostileActors, NamesThatHoldSomethingAreStoppedByTheLimitNotByTheTable) {
  AdmissionController controller(plain_config(1024), Rng(1));
  std::vector<Permit> held;
  for (int i = 0; i < rounds(20'000) + 1024; ++i) {
    auto permit =
        controller.try_admit(from_actor(controller, "stranger-" + std::to_string(i)), kStart);
    if (permit) {
      held.push_back(std::move(permit).value());
    } else {
      ASSERT_EQ(permit.error(), Reason::kOverload) << i;
    }
  }
  EXPECT_EQ(held.size(), 1024U);
}

TEST(HostileActors, ANameOfAMegabyteIsHashedAndNeverStored) {
  AdmissionController controller(plain_config(64), Rng(1));
  const std::string name(1U << 20U, 'n');
  const std::string other = name + "m";
  const std::size_t before = allocations_so_far();
  {
    const std::vector<Permit> permits = admit_all(controller, from_actor(controller, name), 1);
    ASSERT_EQ(permits.size(), 1U);
    EXPECT_EQ(allocations_so_far() - before, allocations_are_counted() ? 1U : 0U);  // that vector
    EXPECT_EQ(controller.top_actors(1).at(0).label, name.substr(0, 40));
  }
  const std::vector<Permit> all = admit_all(controller, from_actor(controller, name), 100);
  EXPECT_EQ(all.size(), 16U);
  EXPECT_TRUE(controller.try_admit(from_actor(controller, other), kStart).has_value());
}

TEST(HostileActors, NoByteOfASecretIsShown) {
  AdmissionController controller(plain_config(64), Rng(1));
  AdmissionRequest request = request_of(Priority::kNormal);
  request.actor = controller.identify_secret("Bearer abcdef");
  const Permit permit = controller.try_admit(request, kStart).value();
  const std::vector<BudgetRow> rows = controller.top_actors(10);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].label, "");
  EXPECT_NE(rows[0].id, 0U);
  // The same secret is the same actor, however it was identified.
  request.actor = controller.identify("Bearer abcdef");
  EXPECT_EQ(admit_all(controller, request, 100).size(), 15U);
}

TEST(HostileActors, TheHashDependsOnTheSeed) {
  const AdmissionController a(plain_config(64), Rng(1));
  const AdmissionController b(plain_config(64), Rng(2));
  EXPECT_FALSE(a.identify("alice").key == b.identify("alice").key);
  EXPECT_TRUE(a.identify("alice").key == a.identify("alice").key);
}

TEST(HostileActors, TheEmptyNameIsAnActorToo) {
  AdmissionController controller(plain_config(64), Rng(1));
  EXPECT_TRUE(controller.identify("").present());
  EXPECT_FALSE(Identity{}.present());
  EXPECT_EQ(admit_all(controller, from_actor(controller, ""), 100).size(), 16U);
}

TEST(HostileActors, AControllersMemoryIsSaidBeforehand) {
  AdmissionConfig config = plain_config(64);
  const std::size_t said = AdmissionController::memory_bytes(config);
  EXPECT_GE(said, (config.actor_table_size + config.peer_table_size) * std::size_t{64});
  config.actor_table_size *= 2;
  EXPECT_GE(AdmissionController::memory_bytes(config) - said, config.actor_table_size / 2 * 64U);
}

}  // namespace
}  // namespace weir::inline v0::inline control
