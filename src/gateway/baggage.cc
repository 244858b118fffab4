#include "baggage.h"

#include <algorithm>
#include <cstring>

#include "weir/base/assert.h"
#include "weir/experimental/http/field.h"

namespace weir::inline v0::gateway {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::string_view next_member(std::string_view& list) noexcept {
  const std::size_t comma = std::min(list.find(','), list.size());
  const std::string_view member = list.substr(0, comma);
  list.remove_prefix(std::min(comma + 1, list.size()));
  return trimmed(member);
}

std::string_view key_of(std::string_view member) noexcept {
  return trimmed(member.substr(0, member.find_first_of("=;")));
}

/// Without properties.
std::string_view member_value(std::string_view member) noexcept {
  const std::size_t equals = member.find('=');
  if (equals == std::string_view::npos) return {};
  member.remove_prefix(equals + 1);
  return trimmed(member.substr(0, member.find(';')));
}

}  // namespace

std::optional<Priority> baggage_priority(const http::HeaderList& headers) noexcept {
  if (!headers.has(http::FieldId::kBaggage)) return std::nullopt;
  for (const http::HeaderView& field : headers) {
    if (field.id != http::FieldId::kBaggage) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const std::string_view member = next_member(rest);
      if (key_of(member) == kPriorityMember) return priority_named(member_value(member));
    }
  }
  return std::nullopt;
}

bool has_member(std::string_view baggage, std::string_view key) noexcept {
  while (!baggage.empty()) {
    if (http::equals_ignore_case(key_of(next_member(baggage)), key)) return true;
  }
  return false;
}

std::string_view without_member(std::string_view baggage, std::string_view key,
                                std::span<char> out) noexcept {
  WEIR_ASSERT(out.size() >= baggage.size());
  std::size_t size = 0;
  while (!baggage.empty()) {
    const std::string_view member = next_member(baggage);
    if (member.empty() || http::equals_ignore_case(key_of(member), key)) continue;
    if (size > 0) out[size++] = ',';
    std::memcpy(out.data() + size, member.data(), member.size());
    size += member.size();
  }
  return {out.data(), size};
}

}  // namespace weir::inline v0::gateway
