#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::io {

/// Why a lookup gave no records. Only kNoRecords is a statement about the name; all others say
/// nothing about where its servers are.
enum class DnsError : std::uint8_t {
  kNotFound,   // NXDOMAIN: the name does not exist
  kNoRecords,  // NOERROR: the name exists and has no such records
  kServFail,   // the server failed or refused
  kTimeout,    // no server answered
  kBadAnswer,  // an answer that cannot be read
};
WEIR_ENUM_NAMES(DnsError, "not_found", "no_records", "servfail", "timeout", "bad_answer")

/// The record types that are asked for, with their numbers in the protocol.
enum class DnsType : std::uint16_t { kA = 1, kAaaa = 28, kSrv = 33 };

/// An SRV record (RFC 2782).
struct DnsService {
  std::string host;  // without the final dot
  std::uint16_t port = 0;
  std::uint16_t priority = 0;  // lower ones first
  std::uint16_t weight = 0;

  bool operator==(const DnsService&) const = default;
};

/// The records of one answer: `addresses` for A and AAAA (their port is 0), `services` for SRV.
struct DnsRecords {
  std::vector<Address> addresses;
  std::vector<DnsService> services;
  Duration ttl{};    // the smallest, the CNAMEs on the way included
  bool cut = false;  // there were more records than records_max

  [[nodiscard]] bool empty() const noexcept { return addresses.empty() && services.empty(); }
};

/// Which records of a long answer are used: always the same ones, however the server orders them,
/// and spread over all of them.
struct DnsSubset {
  std::size_t records_max = 64;
  std::uint64_t seed = 0;
};

/// Reads one DNS response: follows the CNAMEs from the name in its question, takes the records of
/// the asked type at the end of that chain, without duplicates, in an order of their own (so a
/// server that rotates its answer changes nothing), and cuts them down to the subset.
///
/// Promises: reads within `message`, ends for any input; kBadAnswer for what does not follow
/// RFC 1035, kNoRecords if there are no records at the end of the chain.
/// Thread-safety: a function. Cost: memory for four times records_max records; time is linear in
/// the size of the message times at most 16 CNAMEs.
[[nodiscard]] Result<DnsRecords, DnsError> parse_dns_answer(std::span<const std::byte> message,
                                                            DnsType type, DnsSubset subset);

/// The addresses of both families in the order in which to try them (RFC 8305): alternating, IPv6
/// first, at most `max`.
[[nodiscard]] std::vector<Address> alternate_families(std::span<const Address> v6,
                                                      std::span<const Address> v4, std::size_t max);

}  // namespace weir::inline v0::io
