#include "io/dns_answer.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "weir/base/siphash.h"

namespace weir::inline v0::io {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kNameBytesMax = 255;  // RFC 1035, 3.1
constexpr std::size_t kLabelBytesMax = 63;
constexpr int kPointersMax = 128;  // a name has fewer labels
constexpr int kAliasesMax = 16;
constexpr std::uint16_t kClassInternet = 1;
constexpr std::uint16_t kTypeCname = 5;
constexpr std::uint32_t kTtlSecondsMax = 0x7FFFFFFF;  // RFC 2181, 8: larger ones mean 0

/// A name as in the message but in lower case and without pointers: length, label, length, …, 0.
using WireName = std::string;

/// Reads numbers and names; after the first error everything is 0 and `bad` is set.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> message) : message_(message) {}

  [[nodiscard]] bool bad() const noexcept { return bad_; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void seek(std::size_t at) noexcept {
    bad_ = bad_ || at > message_.size();
    at_ = at;
  }
  std::uint8_t u8() noexcept {
    if (bad_ || at_ >= message_.size()) {
      bad_ = true;
      return 0;
    }
    return std::to_integer<std::uint8_t>(message_[at_++]);
  }
  std::uint16_t u16() noexcept {
    const unsigned high = u8();
    return static_cast<std::uint16_t>(high << 8U | u8());
  }
  std::uint32_t u32() noexcept {
    const std::uint32_t high = u16();
    return high << 16U | u16();
  }

  /// A pointer leads back to before the place where this name began, or where the last one led to.
  WireName name() {
    WireName out;
    std::size_t after = 0;  // the first pointer
    std::size_t before = at_;
    int pointers = 0;
    while (!bad_) {
      const std::uint8_t size = u8();
      if ((size & 0xC0U) == 0xC0U) {
        const std::size_t to = (size & 0x3FU) << 8U | u8();
        if (after == 0) after = at_;
        if (to >= before || ++pointers > kPointersMax) bad_ = true;
        before = to;
        at_ = to;
        continue;
      }
      if (size > kLabelBytesMax || out.size() + size + 1 > kNameBytesMax) bad_ = true;
      if (bad_) break;
      out.push_back(static_cast<char>(size));
      if (size == 0) break;
      for (std::uint8_t i = 0; i < size; ++i) out.push_back(lower(u8()));
    }
    if (after != 0) at_ = after;
    return out;
  }

 private:
  static char lower(std::uint8_t c) noexcept {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }

  std::span<const std::byte> message_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

struct Record {
  WireName owner;
  std::uint16_t type = 0;
  std::uint32_t ttl_seconds = 0;
  Address address;     // A, AAAA
  DnsService service;  // SRV
  WireName alias;      // CNAME
};

/// "api.example" of a wire name; nothing for the root or if it is not a host name.
std::optional<std::string> host_of(const WireName& name) {
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

Address address_in(Reader& in, Family family) {
  Address out;
  out.family = family;
  const std::size_t size = family == Family::kV4 ? 4 : 16;
  for (std::size_t i = 0; i < size; ++i) out.ip[i] = in.u8();
  return out;
}

/// Reads the data of a record; false if it does not fit its type.
bool read_data(Reader& in, Record& record, std::size_t size) {
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

/// The records of the answer section; nullopt if it cannot be read.
std::optional<std::vector<Record>> read_records(Reader& in, std::size_t count) {
  std::vector<Record> out;
  for (std::size_t i = 0; i < count; ++i) {
    Record record;
    record.owner = in.name();
    record.type = in.u16();
    const std::uint16_t of_class = in.u16();
    record.ttl_seconds = in.u32();
    if (record.ttl_seconds > kTtlSecondsMax) record.ttl_seconds = 0;
    const std::size_t size = in.u16();
    const std::size_t end = in.at() + size;
    if (in.bad() || !read_data(in, record, size) || in.bad() || in.at() != end) {
      return std::nullopt;
    }
    if (of_class == kClassInternet) out.push_back(std::move(record));
  }
  return out;
}

/// Takes what `asked` has of `type` after following its aliases.
DnsRecords collect(const std::vector<Record>& all, WireName asked, DnsType type) {
  DnsRecords out;
  std::uint32_t ttl = kTtlSecondsMax;
  for (int hops = 0; hops <= kAliasesMax; ++hops) {
    const Record* alias = nullptr;
    for (const Record& record : all) {
      if (record.owner != asked) continue;
      if (record.type == kTypeCname && alias == nullptr) alias = &record;
      if (record.type != static_cast<std::uint16_t>(type)) continue;
      if (type == DnsType::kSrv && record.service.host.empty()) continue;
      ttl = std::min(ttl, record.ttl_seconds);
      if (type == DnsType::kSrv) {
        out.services.push_back(record.service);
      } else {
        out.addresses.push_back(record.address);
      }
    }
    if (!out.empty() || alias == nullptr) break;
    ttl = std::min(ttl, alias->ttl_seconds);
    asked = alias->alias;
  }
  out.ttl = std::chrono::seconds(ttl);
  return out;
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

}  // namespace

Result<DnsRecords, DnsError> parse_dns_answer(std::span<const std::byte> message, DnsType type,
                                              DnsSubset subset) {
  if (message.size() < kHeaderBytes) return unexpected(DnsError::kBadAnswer);
  Reader in(message);
  in.seek(2);
  const std::uint16_t flags = in.u16();
  const std::size_t questions = in.u16();
  const std::size_t answers = in.u16();
  in.seek(kHeaderBytes);
  const bool response = (flags & 0x8000U) != 0;
  const bool truncated = (flags & 0x0200U) != 0;  // a part of a list would look like a removal
  if (!response || truncated || questions != 1) return unexpected(DnsError::kBadAnswer);
  const WireName asked = in.name();
  const bool fits = in.u16() == static_cast<std::uint16_t>(type) && in.u16() == kClassInternet;
  if (in.bad() || !fits) return unexpected(DnsError::kBadAnswer);
  const auto all = read_records(in, answers);
  if (!all) return unexpected(DnsError::kBadAnswer);
  DnsRecords found = collect(*all, asked, type);
  if (found.empty()) return unexpected(DnsError::kNoRecords);
  found.cut = settle(found.addresses, subset);
  found.cut = settle(found.services, subset) || found.cut;
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
