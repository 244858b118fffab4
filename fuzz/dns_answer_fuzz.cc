// Any bytes as a DNS response: only an error, or records that fit into the message, is allowed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"

#include "io/dns_answer.h"

using weir::io::Address;
using weir::io::DnsRecords;
using weir::io::DnsService;
using weir::io::DnsType;

namespace {

constexpr std::size_t kRecordsMax = 8;
constexpr std::size_t kRecordBytesMin = 12;  // name, type, class, TTL, size, data

void check(const DnsRecords& found, DnsType type, std::size_t message_bytes) {
  WEIR_ASSERT(!found.empty());
  WEIR_ASSERT(found.ttl >= weir::Duration::zero());
  const std::size_t count = found.addresses.size() + found.services.size();
  WEIR_ASSERT(count <= kRecordsMax && count * kRecordBytesMin <= message_bytes);
  WEIR_ASSERT(found.services.empty() == (type != DnsType::kSrv));
  WEIR_ASSERT(!found.cut || count == kRecordsMax);
  for (const Address& one : found.addresses) {
    WEIR_ASSERT(std::count(found.addresses.begin(), found.addresses.end(), one) == 1);
  }
  for (const DnsService& one : found.services) {
    WEIR_ASSERT(!one.host.empty() && one.host.size() < 255);
    WEIR_ASSERT(std::count(found.services.begin(), found.services.end(), one) == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = std::as_bytes(std::span(data, size));
  for (const DnsType type : {DnsType::kA, DnsType::kAaaa, DnsType::kSrv}) {
    const auto found = weir::io::parse_dns_answer(message, type, {.records_max = kRecordsMax});
    if (found) check(*found, type, size);
  }
  return 0;
}
