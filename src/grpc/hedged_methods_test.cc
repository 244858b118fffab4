#include "hedged_methods.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/experimental/grpc/method_table.h"

namespace weir::inline v0::grpc {
namespace {

TEST(HedgedMethods, AMethodHasItsOwnLineThenThatOfItsServiceThenNone) {
  const HedgedMethods methods({{.path = "/p.S/*"},
                               {.path = "/p.S/Put", .kind = MethodKind::kIdempotent},
                               {.path = "/p.S/Append", .kind = MethodKind::kOther}});
  EXPECT_EQ(methods.of("/p.S/Get").kind, MethodKind::kRead);
  EXPECT_EQ(methods.of("/p.S/Put").kind, MethodKind::kIdempotent);
  EXPECT_EQ(methods.of("/p.S/Append").kind, MethodKind::kOther);
  for (const char* unknown : {"/p.T/Get", "/p.S", "", "Get", "/p.SX/Get"}) {
    EXPECT_EQ(methods.of(unknown).kind, MethodKind::kOther) << unknown;
  }
}

TEST(HedgedMethods, TheTableOfAServerSaysWhatItsClientsMayHedge) {
  const MethodTable table{{"/p.S/Get", {.idempotent = true}},
                          {"/p.S/Put", {}},
                          {"/p.S/Find", {.cost = 4, .idempotent = true}}};
  const std::vector<HedgedMethod> lines = hedged_methods(table);
  EXPECT_EQ(lines, (std::vector<HedgedMethod>{{.path = "/p.S/Find"}, {.path = "/p.S/Get"}}));
  const HedgedMethods methods(lines);
  EXPECT_EQ(methods.of("/p.S/Get").kind, MethodKind::kRead);
  EXPECT_EQ(methods.of("/p.S/Put").kind, MethodKind::kOther);
}

TEST(HedgedMethods, EachReadHasAClassUpToEightAndFurtherOnesShareTheLast) {
  std::vector<HedgedMethod> lines;
  for (int i = 0; i < 10; ++i) lines.push_back({.path = "/p.S/M" + std::to_string(i)});
  const HedgedMethods methods(lines);
  EXPECT_EQ(methods.read_classes(), kReadClassesMax);
  EXPECT_EQ(methods.of("/p.S/M0").reads, 0U);
  EXPECT_EQ(methods.of("/p.S/M6").reads, 6U);
  EXPECT_EQ(methods.of("/p.S/M7").reads, 7U);
  EXPECT_EQ(methods.of("/p.S/M9").reads, 7U);
  EXPECT_EQ(HedgedMethods({}).read_classes(), 1U);
}

}  // namespace
}  // namespace weir::inline v0::grpc
