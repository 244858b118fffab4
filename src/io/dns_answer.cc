#include "io/dns_answer.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "weir/base/siphash.h"

#include "dns_reader.h"

namespace weir::inline v0::io {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr int kAliasesMax = 16;
constexpr std::uint16_t kClassInternet = 1;
constexpr std::uint16_t kTypeCname = 5;
constexpr std::uint32_t kTtlSecondsMax = 0x7FFFFFFF;  // RFC 2181, 8: larger ones mean 0

struct Record {
  DnsWireName owner;
  std::uint16_t type = 0;
  std::uint32_t ttl_seconds = 0;
  Address address;     // A, AAAA
  DnsService service;  // SRV
  DnsWireName alias;   // CNAME
};

/// "api.example" of a wire name; nothing for the root or if it is not a host name.
std::optional<std::string> host_of(const DnsWireName& name) {
  const auto in_host = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  std::string out;
  for (std::size_t at = 0; at < name.size() && name[at] != 0;) {
    const std::string_view label(name.data() + at + 1, static_cast<std::size_t>(name[at]));
    if (!std::all_of(label.begin(), label.end(), in_host)) return std::nullopt;
    if (!out.empty()) out += '.';
    out += label;
    at += label.size() + 1;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

Address address_in(DnsReader& in, Family family) {
  Address out;
  out.family = family;
  const std::size_t size = family == Family::kV4 ? 4 : 16;
  for (std::size_t i = 0; i < size; ++i) out.ip[i] = in.u8();
  return out;
}

/// Reads the data of a record; false if it does not fit its type.
bool read_data(DnsReader& in, Record& record, std::size_t size) {
  switch (record.type) {
    case static_cast<std::uint16_t>(DnsType::kA):
      record.address = address_in(in, Family::kV4);
      return size == 4;
    case static_cast<std::uint16_t>(DnsType::kAaaa):
      record.address = address_in(in, Family::kV6);
      return size == 16;
    case kTypeCname:
      record.alias = in.name();
      return true;
    case static_cast<std::uint16_t>(DnsType::kSrv):
      record.service.priority = in.u16();
      record.service.weight = in.u16();
      record.service.port = in.u16();
      // A target that is no host name (also ".": "there is no such service") is no record.
      record.service.host = host_of(in.name()).value_or("");
      return true;
    default:
      in.seek(in.at() + size);
      return true;
  }
}

auto rank_of(const Address& address) {
  return address.ip;
}
auto rank_of(const DnsService& service) {
  return std::tie(service.priority, service.host, service.port, service.weight);
}

std::string bytes_of(const Address& address) {
  return {address.ip.begin(), address.ip.end()};
}
std::string bytes_of(const DnsService& service) {
  return service.host + ':' + std::to_string(service.port);
}

/// Sorts, removes duplicates, and cuts to the subset: those with the smallest hashes. So a record
/// that comes or goes changes at most one other. Returns whether it was cut.
template <class T>
bool settle(std::vector<T>& records, DnsSubset subset) {
  const auto by_rank = [](const T& a, const T& b) { return rank_of(a) < rank_of(b); };
  std::sort(records.begin(), records.end(), by_rank);
  records.erase(std::unique(records.begin(), records.end()), records.end());
  if (records.size() <= subset.records_max) return false;
  const SipKey key{subset.seed, ~subset.seed};
  std::vector<std::pair<std::uint64_t, T>> hashed;
  for (T& record : records) {
    const std::uint64_t hash = siphash64(key, bytes_of(record));
    hashed.emplace_back(hash, std::move(record));
  }
  const auto by_hash = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(hashed.begin(), hashed.end(), by_hash);
  records.clear();
  for (std::size_t i = 0; i < subset.records_max; ++i)
    records.push_back(std::move(hashed[i].second));
  std::sort(records.begin(), records.end(), by_rank);
  return true;
}

/// The next record; its data is read if it fits its type, otherwise the reader turns bad.
Record next_record(DnsReader& in) {
  Record record;
  record.owner = in.name();
  record.type = in.u16();
  if (in.u16() != kClassInternet) record.type = 0;  // of no interest
  record.ttl_seconds = in.u32();
  if (record.ttl_seconds > kTtlSecondsMax) record.ttl_seconds = 0;
  const std::size_t size = in.u16();
  const std::size_t end = in.at() + size;
  if (!read_data(in, record, size) || in.at() != end) in.fail();
  return record;
}

/// The records of one type at the end of a chain of aliases. Those of a long answer are cut to the
/// subset as they come, which gives the same ones as cutting them at the end; so the memory does
/// not grow with the answer.
class Collector {
 public:
  Collector(DnsType type, DnsSubset subset) : type_(type), subset_(subset) {}

  /// Follows the aliases of `asked` through `count` records; false if one cannot be read.
  [[nodiscard]] bool run(const DnsReader& records, std::size_t count, DnsWireName asked) {
    for (int hops = 0; hops <= kAliasesMax; ++hops) {
      std::optional<DnsWireName> alias;
      DnsReader in = records;
      for (std::size_t i = 0; i < count && !in.bad(); ++i) {
        Record record = next_record(in);
        if (in.bad() || record.owner != asked) continue;
        if (record.type == kTypeCname && !alias) {
          ttl_ = std::min(ttl_, record.ttl_seconds);
          alias = std::move(record.alias);
        } else if (record.type == static_cast<std::uint16_t>(type_)) {
          add(std::move(record));
        }
      }
      if (in.bad()) return false;
      if (!found_.empty() || !alias) break;
      asked = *std::move(alias);
    }
    return true;
  }

  DnsRecords take() {
    cut();
    found_.ttl = std::chrono::seconds(ttl_);
    return std::move(found_);
  }

 private:
  void add(Record record) {
    if (type_ == DnsType::kSrv && record.service.host.empty()) return;
    ttl_ = std::min(ttl_, record.ttl_seconds);
    if (type_ == DnsType::kSrv) {
      found_.services.push_back(std::move(record.service));
    } else {
      found_.addresses.push_back(record.address);
    }
    if (found_.services.size() + found_.addresses.size() >= 4 * subset_.records_max) cut();
  }
  void cut() {
    found_.cut = settle(found_.addresses, subset_) || found_.cut;
    found_.cut = settle(found_.services, subset_) || found_.cut;
  }

  DnsType type_;
  DnsSubset subset_;
  std::uint32_t ttl_ = kTtlSecondsMax;
  DnsRecords found_;
};

}  // namespace

Result<DnsRecords, DnsError> parse_dns_answer(std::span<const std::byte> message, DnsType type,
                                              DnsSubset subset) {
  if (message.size() < kHeaderBytes) return unexpected(DnsError::kBadAnswer);
  DnsReader in(message);
  in.seek(2);
  const std::uint16_t flags = in.u16();
  const std::size_t questions = in.u16();
  const std::size_t answers = in.u16();
  in.seek(kHeaderBytes);
  const bool response = (flags & 0x8000U) != 0;
  const bool truncated = (flags & 0x0200U) != 0;  // a part of a list would look like a removal
  if (!response || truncated || questions != 1) return unexpected(DnsError::kBadAnswer);
  const DnsWireName asked = in.name();
  const bool fits = in.u16() == static_cast<std::uint16_t>(type) && in.u16() == kClassInternet;
  if (in.bad() || !fits) return unexpected(DnsError::kBadAnswer);
  Collector collector(type, subset);
  if (!collector.run(in, answers, asked)) return unexpected(DnsError::kBadAnswer);
  DnsRecords found = collector.take();
  if (found.empty()) return unexpected(DnsError::kNoRecords);
  return found;
}

std::vector<Address> alternate_families(std::span<const Address> v6, std::span<const Address> v4,
                                        std::size_t max) {
  std::vector<Address> out;
  for (std::size_t i = 0; out.size() < max && i < std::max(v6.size(), v4.size()); ++i) {
    if (i < v6.size()) out.push_back(v6[i]);
    if (i < v4.size() && out.size() < max) out.push_back(v4[i]);
  }
  return out;
}

}  // namespace weir::inline v0::io
