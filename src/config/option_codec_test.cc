#include "config/option_codec.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace weir::config {
namespace {

using Text = std::string;

OptionRow row(OptionKind kind, double low = 0, double high = 0, std::string_view name = "x") {
  return {"s", name, kind, low, high, "", OptionApply::kAdmission, "", ""};
}
RawValue integer(std::int64_t value) {
  return {value};
}
RawValue text(const char* value) {
  return {Text(value)};
}
RawValue list(std::initializer_list<const char*> items) {
  RawValue::List values;
  for (const char* item : items) values.push_back(text(item));
  return {values};
}

TEST(OptionCodec, CountTakesWholeNumbersInsideOfItsRange) {
  const OptionRow count = row(OptionKind::kCount, 1, 16383);
  std::uint32_t field = 7;
  EXPECT_EQ(assign(field, integer(16383), count), std::nullopt);
  EXPECT_EQ(field, 16383U);
  EXPECT_EQ(assign(field, integer(0), count), "1 to 16383");
  EXPECT_EQ(assign(field, integer(-1), count), "1 to 16383");
  EXPECT_EQ(assign(field, integer(16384), count), "1 to 16383");
  EXPECT_EQ(assign(field, RawValue{1.5}, count), "a whole number, 1 to 16383");
  EXPECT_EQ(assign(field, text("5"), count), "a whole number, 1 to 16383");
  EXPECT_EQ(assign(field, RawValue{true}, count), "a whole number, 1 to 16383");
  EXPECT_EQ(field, 16383U) << "a refused value leaves the field alone";
}

TEST(OptionCodec, CountNeverWrapsAroundItsField) {
  std::uint32_t field = 7;
  EXPECT_NE(assign(field, integer(std::int64_t{1} << 32), row(OptionKind::kCount, 0, 1e18)),
            std::nullopt);
  EXPECT_NE(assign(field, integer(std::numeric_limits<std::int64_t>::min()),
                   row(OptionKind::kCount, 0, 1e18)),
            std::nullopt);
  EXPECT_EQ(field, 7U);
}

TEST(OptionCodec, SizeTakesBytesOrAUnit) {
  const OptionRow size = row(OptionKind::kSize, 1024, 1 << 30);
  std::uint64_t field = 0;
  EXPECT_EQ(assign(field, text("32KiB"), size), std::nullopt);
  EXPECT_EQ(field, 32768U);
  EXPECT_EQ(assign(field, integer(4096), size), std::nullopt);
  EXPECT_EQ(field, 4096U);
  EXPECT_EQ(assign(field, text("1B"), size), "1KiB to 1GiB");
  EXPECT_EQ(assign(field, text("4G"), size),
            "a size like \"4GiB\" or a number of bytes, 1KiB to 1GiB");
  EXPECT_EQ(assign(field, RawValue{1.0}, size),
            "a size like \"4GiB\" or a number of bytes, 1KiB to 1GiB");
  EXPECT_EQ(print(std::uint64_t{4096}, size), "\"4KiB\"");
  EXPECT_EQ(print(std::uint64_t{0}, size), "0");
}

TEST(OptionCodec, TimeTakesAUnitAndABareNumberOnlyWhereTheNameSaysMilliseconds) {
  using std::chrono::milliseconds;
  const OptionRow with_ms = row(OptionKind::kTime, 10, 60000, "wait_ms");
  const OptionRow without = row(OptionKind::kTime, 10, 60000, "wait");
  Duration field{};
  EXPECT_EQ(assign(field, integer(500), with_ms), std::nullopt);
  EXPECT_EQ(field, Duration(milliseconds(500)));
  EXPECT_EQ(assign(field, text("2s"), with_ms), std::nullopt);
  EXPECT_EQ(field, Duration(milliseconds(2000)));
  EXPECT_EQ(assign(field, text("1500us"), with_ms), "10ms to 1m");
  EXPECT_EQ(assign(field, integer(500), without), "a time like \"500ms\", 10ms to 1m");
  EXPECT_EQ(assign(field, text("20ms"), without), std::nullopt);
  EXPECT_EQ(assign(field, integer(-1), with_ms), "10ms to 1m");
  EXPECT_EQ(assign(field, integer(std::numeric_limits<std::int64_t>::max()), with_ms),
            "10ms to 1m");
  EXPECT_EQ(assign(field, text("soon"), with_ms),
            "a time like \"500ms\" or a number of milliseconds, 10ms to 1m");
  EXPECT_EQ(print(Duration(milliseconds(500)), with_ms), "500");
  EXPECT_EQ(print(Duration(milliseconds(500)), without), "\"500ms\"");
  EXPECT_EQ(print(Duration(1500), with_ms), "\"1500ns\"");
}

TEST(OptionCodec, RatioRefusesNaNAndInfinity) {
  const OptionRow ratio = row(OptionKind::kRatio, 0, 1);
  double field = 0.5;
  EXPECT_EQ(assign(field, RawValue{0.85}, ratio), std::nullopt);
  EXPECT_EQ(assign(field, integer(1), ratio), std::nullopt);
  EXPECT_EQ(field, 1.0);
  EXPECT_EQ(assign(field, RawValue{std::numeric_limits<double>::quiet_NaN()}, ratio), "0 to 1");
  EXPECT_EQ(assign(field, RawValue{std::numeric_limits<double>::infinity()}, ratio), "0 to 1");
  EXPECT_EQ(assign(field, RawValue{1.0000001}, ratio), "0 to 1");
  EXPECT_EQ(assign(field, text("0.5"), ratio), "a number, 0 to 1");
  EXPECT_EQ(print(1.0, ratio), "1.0");
  EXPECT_EQ(print(0.1, ratio), "0.1");
}

TEST(OptionCodec, FlagAndTextSayWhatTheyExpect) {
  bool flag = false;
  EXPECT_EQ(assign(flag, RawValue{true}, row(OptionKind::kFlag)), std::nullopt);
  EXPECT_TRUE(flag);
  EXPECT_EQ(assign(flag, integer(1), row(OptionKind::kFlag)), "true or false");
  Text string;
  EXPECT_EQ(assign(string, integer(1), row(OptionKind::kText)), "a text in quotes");
}

TEST(OptionCodec, ChoiceListsItsWords) {
  RuleMode mode = RuleMode::kOff;
  EXPECT_EQ(assign(mode, text("shadow"), row(OptionKind::kChoice)), std::nullopt);
  EXPECT_EQ(mode, RuleMode::kShadow);
  EXPECT_EQ(assign(mode, text("shade"), row(OptionKind::kChoice)), "one of off, shadow, enforce");
  EXPECT_EQ(assign(mode, integer(1), row(OptionKind::kChoice)), "one of off, shadow, enforce");
  EXPECT_EQ(print(mode, row(OptionKind::kChoice)), "\"shadow\"");
}

TEST(OptionCodec, EveryEnumReadsBackEveryWord) {
  const auto check = [](auto first) {
    auto field = first;
    for (const std::string_view word : names_of(first)) {
      EXPECT_EQ(assign(field, RawValue{Text(word)}, row(OptionKind::kChoice)), std::nullopt);
      EXPECT_EQ(print(field, row(OptionKind::kChoice)), quoted_text(word));
    }
  };
  check(RuleMode{});
  check(LimitKind{});
  check(gateway::AccessLog{});
  check(gateway::Forwarded{});
  check(io::ClientCertificate{});
  check(gateway::BytesCharged{});
  check(Priority{});
  check(gateway::IdentityKind{});
}

TEST(OptionCodec, ListsNameTheItemThatIsWrong) {
  std::vector<IpRange> ranges;
  const OptionRow kind = row(OptionKind::kRanges);
  EXPECT_EQ(assign(ranges, list({"10.0.0.0/8", "::1"}), kind), std::nullopt);
  EXPECT_EQ(print(ranges, kind), "[\"10.0.0.0/8\", \"::1/128\"]");
  EXPECT_EQ(assign(ranges, list({"10.0.0.0/8", "10.0.0.1/8"}), kind),
            "a list of an address or a range like 10.0.0.0/8, which \"10.0.0.1/8\" is not");
  EXPECT_EQ(assign(ranges, text("10.0.0.0/8"), kind),
            "a list: [an address or a range like 10.0.0.0/8, …]");
  EXPECT_EQ(ranges.size(), 2U);
  std::vector<gateway::IdentityKind> identity;
  EXPECT_EQ(assign(identity, list({"bearer", "address"}), row(OptionKind::kChoices)), std::nullopt);
  EXPECT_EQ(identity,
            (std::vector{gateway::IdentityKind::kBearer, gateway::IdentityKind::kAddress}));
  EXPECT_NE(assign(identity, list({"cookie"}), row(OptionKind::kChoices)), std::nullopt);
  std::optional<std::vector<gateway::UpgradeProtocol>> upgrade;
  EXPECT_EQ(print(upgrade, row(OptionKind::kChoices)), "");
  EXPECT_EQ(assign(upgrade, list({}), row(OptionKind::kChoices)), std::nullopt);
  EXPECT_TRUE(upgrade.has_value() && upgrade->empty());
  EXPECT_EQ(assign(upgrade, list({"websocket"}), row(OptionKind::kChoices)), std::nullopt);
  EXPECT_EQ(upgrade->size(), 1U);
  EXPECT_EQ(print(upgrade, row(OptionKind::kChoices)), R"(["websocket"])");
  EXPECT_NE(assign(upgrade, list({"h2c"}), row(OptionKind::kChoices)), std::nullopt);
}

TEST(OptionCodec, AnEmptyAddressMeansNone) {
  std::optional<NetAddress> field = NetAddress{};
  EXPECT_EQ(assign(field, text(""), row(OptionKind::kAddress)), std::nullopt);
  EXPECT_FALSE(field.has_value());
  EXPECT_EQ(print(field, row(OptionKind::kAddress)), "\"\"");
  EXPECT_NE(assign(field, text("nowhere"), row(OptionKind::kAddress)), std::nullopt);
  EXPECT_NE(assign(field, integer(80), row(OptionKind::kAddress)), std::nullopt);
}

TEST(OptionCodec, AnOptionLeftOutPrintsNothing) {
  std::optional<std::uint32_t> field;
  const OptionRow count = row(OptionKind::kCount, 1, 10);
  EXPECT_EQ(print(field, count), "");
  EXPECT_EQ(assign(field, integer(11), count), "1 to 10");
  EXPECT_FALSE(field.has_value());
  EXPECT_EQ(assign(field, integer(3), count), std::nullopt);
  EXPECT_EQ(print(field, count), "3");
}

TEST(OptionCodec, EnvironmentTextBecomesTheValueOfItsKind) {
  EXPECT_EQ(raw_from_text("17", row(OptionKind::kCount)), integer(17));
  EXPECT_EQ(raw_from_text("17x", row(OptionKind::kCount)), text("17x"));
  EXPECT_EQ(raw_from_text("4GiB", row(OptionKind::kSize)), text("4GiB"));
  EXPECT_EQ(raw_from_text("500", row(OptionKind::kTime)), integer(500));
  EXPECT_EQ(raw_from_text("0.5", row(OptionKind::kRatio)), RawValue{0.5});
  EXPECT_EQ(raw_from_text("true", row(OptionKind::kFlag)), RawValue{true});
  EXPECT_EQ(raw_from_text("0", row(OptionKind::kFlag)), RawValue{false});
  EXPECT_EQ(raw_from_text("yes", row(OptionKind::kFlag)), text("yes"));
  EXPECT_EQ(raw_from_text("17", row(OptionKind::kText)), text("17"));
  EXPECT_EQ(raw_from_text("a, b", row(OptionKind::kTexts)), list({"a", "b"}));
  EXPECT_EQ(raw_from_text("", row(OptionKind::kTexts)), list({}));
}

}  // namespace
}  // namespace weir::config
