#include "http/proxy_header.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using Kind = ProxyHeader::Kind;
using std::string_literals::operator""s;

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);

Result<std::optional<ProxyHeader>, ProxyFault> parse(std::string_view text) {
  return parse_proxy_header(std::as_bytes(std::span(text.data(), text.size())));
}

std::string fault_of(std::string_view text) {
  const auto parsed = parse(text);
  if (parsed) return *parsed ? "accepted" : "needs more";
  return std::string(name_of(parsed.error()));
}

struct V2 {
  std::uint8_t command = 0x21;
  std::uint8_t family = 0x11;
  std::string body = std::string("\xc0\0\x02\x07\x0a\x01\x02\x03\x10\x92\x01\xbb", 12);

  [[nodiscard]] std::string text() const {
    std::string all(kSignature);
    all += static_cast<char>(command);
    all += static_cast<char>(family);
    all += static_cast<char>(body.size() >> 8U);
    all += static_cast<char>(body.size() & 0xffU);
    return all + body;
  }
};

std::string tlv(std::uint8_t type, std::string_view value) {
  std::string all(1, static_cast<char>(type));
  all += static_cast<char>(value.size() >> 8U);
  all += static_cast<char>(value.size() & 0xffU);
  return all.append(value);
}

/// Bit by bit, so that it shares nothing with the code under test.
std::string crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const std::uint32_t in = (static_cast<std::uint8_t>(byte) >> bit) & 1U;
      const bool carry = ((crc ^ in) & 1U) != 0;
      crc = (crc >> 1U) ^ (carry ? 0x82F63B78U : 0U);
    }
  }
  crc = ~crc;
  std::string text;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) text += static_cast<char>(crc >> shift);
  return text;
}

std::string mapped(std::string_view v4) {
  return std::string(10, '\0') + "\xff\xff" + std::string(v4);
}

const std::string kTcp4 = "PROXY TCP4 192.0.2.7 10.1.2.3 4242 443\r\n";
const std::string kTcp6 = "PROXY TCP6 2001:db8::7 ::1 1 65535\r\n";

std::vector<std::string> good_headers() {
  V2 v6{.family = 0x21, .body = std::string(32, '\x20') + "\0\x50\x01\xbb"s};
  V2 with_tlvs;
  with_tlvs.body += tlv(0x04, "") + tlv(0xea, "vpce-1") + tlv(0x20, std::string(300, 't'));
  return {kTcp4,
          kTcp6,
          "PROXY UNKNOWN\r\n",
          "PROXY UNKNOWN anything at all 1 2 3\r\n",
          V2{}.text(),
          v6.text(),
          with_tlvs.text(),
          V2{.command = 0x20, .family = 0, .body = ""}.text(),
          V2{.command = 0x21, .family = 0, .body = "ignored"}.text(),
          V2{.family = 0x31, .body = std::string(216, 'u')}.text()};
}

TEST(ProxyHeader, Version1NamesBothEnds) {
  const auto v4 = parse(kTcp4);
  ASSERT_TRUE(v4 && *v4);
  EXPECT_EQ((**v4).kind, Kind::kAddress);
  EXPECT_EQ((**v4).version, 1);
  EXPECT_EQ(to_string((**v4).source.ip), "192.0.2.7");
  EXPECT_EQ((**v4).source.port, 4242);
  EXPECT_EQ(to_string((**v4).destination.ip), "10.1.2.3");
  EXPECT_EQ((**v4).destination.port, 443);
  EXPECT_EQ((**v4).size, kTcp4.size());
  const auto v6 = parse(kTcp6);
  ASSERT_TRUE(v6 && *v6);
  EXPECT_EQ(to_string((**v6).source.ip), "2001:db8::7");
  EXPECT_EQ((**v6).source.port, 1);
  EXPECT_EQ((**v6).destination.port, 65535);
}

TEST(ProxyHeader, Version2NamesBothEnds) {
  const auto v4 = parse(V2{}.text());
  ASSERT_TRUE(v4 && *v4);
  EXPECT_EQ((**v4).kind, Kind::kAddress);
  EXPECT_EQ((**v4).version, 2);
  EXPECT_EQ(to_string((**v4).source.ip), "192.0.2.7");
  EXPECT_EQ((**v4).source.port, 4242);
  EXPECT_EQ(to_string((**v4).destination.ip), "10.1.2.3");
  EXPECT_EQ((**v4).destination.port, 443);
  const std::string body = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x07" +
                           std::string(15, '\0') + "\x01\x00\x50\x01\xbb"s;
  const auto v6 = parse(V2{.family = 0x21, .body = body}.text());
  ASSERT_TRUE(v6 && *v6);
  EXPECT_EQ(to_string((**v6).source.ip), "2001:db8::7");
  EXPECT_EQ((**v6).source.port, 80);
  EXPECT_EQ(to_string((**v6).destination.ip), "::1");
}

TEST(ProxyHeader, AMappedAddressIsTheV4Address) {
  const auto v1 = parse("PROXY TCP6 ::ffff:192.0.2.7 ::ffff:10.1.2.3 1 2\r\n");
  ASSERT_TRUE(v1 && *v1);
  EXPECT_EQ(to_string((**v1).source.ip), "192.0.2.7");
  EXPECT_FALSE((**v1).source.ip.v6);
  const std::string body =
      mapped("\xc0\0\x02\x07"s) + mapped("\x0a\x01\x02\x03") + "\x10\x92\x01\xbb";
  const auto v2 = parse(V2{.family = 0x21, .body = body}.text());
  ASSERT_TRUE(v2 && *v2);
  EXPECT_EQ(to_string((**v2).source.ip), "192.0.2.7");
}

TEST(ProxyHeader, ClientsWithoutAnAddressAreNamedByKind) {
  struct Case {
    std::string text;
    Kind kind;
  };
  const std::vector<Case> cases = {
      {"PROXY UNKNOWN\r\n", Kind::kUnknown},
      {"PROXY UNKNOWN ffff:ffff::1 ffff:ffff::2 65535 65535\r\n", Kind::kUnknown},
      {V2{.family = 0, .body = ""}.text(), Kind::kUnknown},
      {V2{.command = 0x20, .family = 0, .body = ""}.text(), Kind::kLocal},
      // The rest of LOCAL is ignored: an address of another, even a family that does not exist.
      {V2{.command = 0x20}.text(), Kind::kLocal},
      {V2{.command = 0x20, .family = 0xff, .body = "???"}.text(), Kind::kLocal},
      {V2{.family = 0x31, .body = std::string(216, 'u')}.text(), Kind::kUnix},
  };
  for (const Case& one : cases) {
    const auto parsed = parse(one.text);
    ASSERT_TRUE(parsed && *parsed) << one.text;
    EXPECT_EQ((**parsed).kind, one.kind) << one.text;
    EXPECT_EQ((**parsed).source, ProxyHeader::Endpoint{}) << one.text;
    EXPECT_EQ((**parsed).size, one.text.size()) << one.text;
  }
}

TEST(ProxyHeader, EveryCutNeedsMoreAndWhatFollowsIsNotPartOfIt) {
  for (const std::string& text : good_headers()) {
    const auto whole = parse(text);
    ASSERT_TRUE(whole && *whole) << text;
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
      EXPECT_EQ(fault_of(std::string_view(text).substr(0, cut)), "needs more")
          << cut << " " << text;
    }
    for (const std::string& rest : {"G"s, "GET / HTTP/1.1\r\n\r\n"s, text, "\0\xff\n"s}) {
      const auto followed = parse(text + rest);
      ASSERT_TRUE(followed && *followed) << text;
      EXPECT_EQ(**followed, **whole) << text;
    }
  }
}

TEST(ProxyHeader, OtherProtocolsAreRecognisedByTheirFirstDifferingByte) {
  for (const std::string& text :
       {"GET / HTTP/1.1\r\n"s, "POST"s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s,
        "\x16\x03\x01\x02\x00"s, "proxy TCP4"s, "PROXY\tTCP4"s, " PROXY TCP4"s, "\r\nGET"s,
        "\r\n\r\n\0\r\nQUIT\r"s, "\n"s, "\0"s}) {
    EXPECT_EQ(fault_of(text), "no PROXY header") << text;
  }
  EXPECT_EQ(fault_of("PR"), "needs more");
  EXPECT_EQ(fault_of("PRI"), "no PROXY header");
}

TEST(ProxyHeader, Version1IsReadStrictly) {
  struct Case {
    const char* text;
    const char* fault;
  };
  const std::vector<Case> cases = {
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242 443\n", "bad line"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242\r\n", "bad line"},
      {"PROXY \r\n", "bad line"},
      {"PROXY \n", "bad line"},
      {"PROXY TCP4\r\n", "bad line"},
      {"PROXY UNKNOWN\n", "bad line"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242 443 \r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242 443 1\r\n", "bad port"},
      {"PROXY TCP4  192.0.2.7 10.1.2.3 4242 443\r\n", "bad address"},
      {"PROXY TCP5 192.0.2.7 10.1.2.3 4242 443\r\n", "bad family"},
      {"PROXY tcp4 192.0.2.7 10.1.2.3 4242 443\r\n", "bad family"},
      {"PROXY UNKNOWNX a b c d\r\n", "bad family"},
      {"PROXY TCP4 192.0.2.07 10.1.2.3 4242 443\r\n", "bad address"},
      {"PROXY TCP4 192.0.2 10.1.2.3 4242 443\r\n", "bad address"},
      {"PROXY TCP4 192.0.2.256 10.1.2.3 4242 443\r\n", "bad address"},
      {"PROXY TCP4 192.0.2.7 name 4242 443\r\n", "bad address"},
      {"PROXY TCP4 2001:db8::7 ::1 4242 443\r\n", "bad address"},
      {"PROXY TCP4 192.0.2.7 ::1 4242 443\r\n", "bad address"},
      {"PROXY TCP6 192.0.2.7 10.1.2.3 4242 443\r\n", "bad address"},
      {"PROXY TCP6 fe80::1%eth0 ::1 4242 443\r\n", "bad address"},
      {"PROXY TCP6 [::1] ::1 4242 443\r\n", "bad address"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 65536 443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242 99999999999\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 +1 443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 -1 443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 0x1 443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 01 443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3  443\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 4242 443\r\r\n", "bad port"},
      {"PROXY TCP4 192.0.2.7 10.1.2.3 0 0\r\n", "accepted"},
  };
  for (const Case& one : cases) EXPECT_EQ(fault_of(one.text), one.fault) << one.text;
}

TEST(ProxyHeader, Version1Has107BytesAtMost) {
  const std::string begin = "PROXY UNKNOWN ";
  const std::string longest = begin + std::string(107 - begin.size() - 2, 'x') + "\r\n";
  ASSERT_EQ(longest.size(), kProxyV1BytesMax);
  EXPECT_EQ(fault_of(longest), "accepted");
  const std::string longer = begin + std::string(107 - begin.size() - 1, 'x') + "\r\n";
  EXPECT_EQ(fault_of(longer), "too long");
  EXPECT_EQ(fault_of(longer.substr(0, 106)), "needs more");
  EXPECT_EQ(fault_of(longer.substr(0, 107)), "too long") << "without waiting for its end";
}

TEST(ProxyHeader, Version2IsReadStrictly) {
  struct Case {
    V2 header;
    const char* fault;
  };
  const std::string ends = V2{}.body;
  const std::vector<Case> cases = {
      {{.command = 0x11}, "bad version"},
      {{.command = 0x31}, "bad version"},
      {{.command = 0x01}, "bad version"},
      {{.command = 0x22}, "bad command"},
      {{.command = 0x2f}, "bad command"},
      {{.family = 0x12}, "bad family"},  // datagrams do not arrive on a stream
      {{.family = 0x10}, "bad family"},
      {{.family = 0x01}, "bad family"},
      {{.family = 0x41}, "bad family"},
      {{.family = 0x22}, "bad family"},
      {{.body = ends.substr(0, 11)}, "bad length"},
      {{.body = ""}, "bad length"},
      {{.family = 0x21, .body = std::string(35, 'a')}, "bad length"},
      {{.family = 0x31, .body = std::string(215, 'a')}, "bad length"},
      {{.body = ends + "\x04"}, "bad TLV"},
      {{.body = ends + "\x04\0"s}, "bad TLV"},
      {{.body = ends + "\x04\0\x01"s}, "bad TLV"},
      {{.body = ends + tlv(4, "x") + "\x04\xff\xff"}, "bad TLV"},
      {{.body = ends + tlv(3, "123")}, "bad TLV"},
      {{.body = ends + tlv(3, "1234")}, "bad checksum"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(fault_of(one.header.text()), one.fault)
        << int{one.header.command} << " " << int{one.header.family};
  }
}

TEST(ProxyHeader, Version2CountsAtMost1024BytesAfterItsFixedPart) {
  V2 header;
  header.body += tlv(0x04, std::string(1024 - header.body.size() - 3, 'n'));
  ASSERT_EQ(header.text().size(), kProxyHeaderBytesMax);
  EXPECT_EQ(fault_of(header.text()), "accepted");
  header.body += 'n';
  EXPECT_EQ(fault_of(header.text().substr(0, 15)), "needs more");
  EXPECT_EQ(fault_of(header.text().substr(0, 16)), "too long") << "as soon as the length is known";
  EXPECT_EQ(fault_of(V2{.command = 0x20, .body = std::string(1025, 'l')}.text()), "too long");
}

TEST(ProxyHeader, FaultsAreReportedAtTheirByteAndStayFaults) {
  const std::string wrong = V2{.command = 0x11}.text();
  EXPECT_EQ(fault_of(wrong.substr(0, 12)), "needs more");
  for (std::size_t cut = 13; cut <= wrong.size(); ++cut) {
    EXPECT_EQ(fault_of(wrong.substr(0, cut)), "bad version") << cut;
  }
  const std::string family = V2{.family = 0x12}.text();
  EXPECT_EQ(fault_of(family.substr(0, 13)), "needs more");
  EXPECT_EQ(fault_of(family.substr(0, 14)), "bad family");
}

TEST(ProxyHeader, AChecksumMustBeRightIfItIsThere) {
  ASSERT_EQ(crc32c("123456789"), "\xe3\x06\x92\x83") << "the reference itself";
  V2 header;
  const std::string before = header.body + tlv(0xea, "vpce");
  const std::string after = tlv(0x04, "padding");
  header.body = before + tlv(3, std::string(4, '\0')) + after;
  const std::string sum = crc32c(header.text());
  header.body = before + tlv(3, sum) + after;
  const std::string right = header.text();
  EXPECT_EQ(fault_of(right), "accepted");
  const std::size_t type_at = kProxyV2FixedBytes + before.size();  // another type: no checksum
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (i == type_at) continue;
    std::string changed = right;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_NE(fault_of(changed), "accepted") << "byte " << i;
  }
  header.body = before + tlv(3, sum) + tlv(3, sum);
  EXPECT_EQ(fault_of(header.text()), "bad TLV") << "two of them";
}

}  // namespace
}  // namespace weir::http
