#include "weir/experimental/http/field.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "scan.h"

namespace weir::inline v0::http {
namespace {

constexpr std::size_t kFieldCount = static_cast<std::size_t>(FieldId::kCount);

constexpr std::array<std::string_view, kFieldCount> kNames = {"",
#define WEIR_X(enumerator, name) name,
                                                              WEIR_FIELDS(WEIR_X)
#undef WEIR_X
};

// A perfect hash over length and three letters; the compiler finds the multiplier.
constexpr std::size_t kSlots = 512;
constexpr unsigned kSlotShift = 32 - 9;

constexpr std::uint32_t lower(char c) {
  return static_cast<unsigned char>(c) | 0x20U;
}

constexpr std::size_t slot_of(std::string_view name, std::uint32_t multiplier) {
  const std::uint32_t key = static_cast<std::uint32_t>(name.size()) | lower(name.front()) << 8U |
                            lower(name[name.size() / 2]) << 16U | lower(name.back()) << 24U;
  return key * multiplier >> kSlotShift;
}

consteval bool separates(std::uint32_t multiplier) {
  std::array<bool, kSlots> taken{};
  for (std::size_t i = 1; i < kFieldCount; ++i) {
    bool& slot = taken[slot_of(kNames[i], multiplier)];
    if (slot) return false;
    slot = true;
  }
  return true;
}

consteval std::uint32_t find_multiplier() {
  std::uint32_t multiplier = 0x9e3779b1;
  while (!separates(multiplier)) multiplier = multiplier * 0x915f77f5U + 2;
  return multiplier;
}

constexpr std::uint32_t kMultiplier = find_multiplier();

consteval std::array<FieldId, kSlots> make_slots() {
  std::array<FieldId, kSlots> slots{};
  for (std::size_t i = 1; i < kFieldCount; ++i)
    slots[slot_of(kNames[i], kMultiplier)] = static_cast<FieldId>(i);
  return slots;
}

constexpr std::array<FieldId, kSlots> kSlotIds = make_slots();

template <class Word>
[[nodiscard]] bool same_word(const char* name, const char* known) {
  Word a;
  Word b;
  std::memcpy(&a, name, sizeof a);
  std::memcpy(&b, known, sizeof b);
  return (a | static_cast<Word>(0x2020202020202020U)) == b;
}

/// `known` consists of lower-case letters, digits and '-'. Setting bit 5 maps no other token byte
/// to one of these ('\r' would become '-', but is not a token byte), so this is exact for tokens.
[[nodiscard]] bool same_token(const char* name, std::string_view known) {
  const std::size_t size = known.size();
  const char* k = known.data();
  if (size >= 8) {
    std::size_t i = 0;
    for (; i + 8 <= size; i += 8)
      if (!same_word<std::uint64_t>(name + i, k + i)) return false;
    return same_word<std::uint64_t>(name + size - 8, k + size - 8);
  }
  if (size >= 4)
    return same_word<std::uint32_t>(name, k) &&
           same_word<std::uint32_t>(name + size - 4, k + size - 4);
  for (std::size_t i = 0; i < size; ++i)
    if (lower(name[i]) != lower(k[i])) return false;
  return true;
}

template <class... Ids>
constexpr std::uint64_t set_of(Ids... ids) {
  return (field_bit(ids) | ...);
}

using enum FieldId;

constexpr std::uint64_t kHopByHop =
    set_of(kConnection, kKeepAlive, kProxyConnection, kTransferEncoding, kUpgrade, kTe,
           kHttp2Settings, kProxyAuthorization, kProxyAuthenticate);

constexpr std::uint64_t kForbiddenInTrailers =
    kHopByHop | set_of(kTrailer, kHost, kContentLength, kExpect, kMaxForwards, kContentType,
                       kContentEncoding, kContentRange, kRange, kCacheControl, kDate, kRetryAfter,
                       kLocation, kVary, kAge, kAuthorization, kWwwAuthenticate, kCookie,
                       kSetCookie, kXApiKey, kForwarded, kVia, kXForwardedFor, kXForwardedHost,
                       kXForwardedProto, kXRealIp, kXWeirPriority, kXWeirPeer, kXWeirActor,
                       kXWeirAttempt, kXWeirDeadlineMs);

}  // namespace

FieldId field_id(std::string_view name) noexcept {
  if (name.empty()) return FieldId::kOther;
  const FieldId id = kSlotIds[slot_of(name, kMultiplier)];
  const std::string_view known = kNames[static_cast<std::size_t>(id)];
  // An empty slot holds kOther, whose name is empty, so its size differs.
  if (known.size() != name.size() || !same_token(name.data(), known)) return FieldId::kOther;
  return id;
}

std::string_view field_name(FieldId id) noexcept {
  return kNames[static_cast<std::size_t>(id)];
}

bool is_hop_by_hop(FieldId id) noexcept {
  return (kHopByHop & field_bit(id)) != 0;
}

bool is_forbidden_in_trailers(FieldId id) noexcept {
  return (kForbiddenInTrailers & field_bit(id)) != 0;
}

bool is_valid_field_name(std::string_view name) noexcept {
  return !name.empty() && scan::all_token(name.data(), name.size());
}

bool is_valid_field_value(std::string_view value) noexcept {
  return scan::all_value(value.data(), value.size());
}

bool equals_ignore_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const std::uint32_t x = lower(a[i]);
    if (x != lower(b[i]) || x < 'a' || x > 'z') return false;
  }
  return true;
}

}  // namespace weir::inline v0::http
