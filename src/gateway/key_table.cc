#include "key_table.h"

#include <algorithm>
#include <optional>

namespace weir::inline v0::gateway {
namespace {

std::optional<unsigned> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

std::optional<io::Sha256Digest> parse_digest(std::string_view text) noexcept {
  io::Sha256Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = hex_digit(text[2 * i]);
    const auto low = hex_digit(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(*high << 4U | *low);
  }
  return digest;
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= KeyTable::kNameMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string_view next_line(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  constexpr std::string_view kBlank = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  return line.substr(0, line.find_last_not_of(kBlank) + 1);
}

}  // namespace

Result<KeyTable, std::string> KeyTable::parse(std::string_view text) {
  KeyTable table;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = next_line(text);
    if (line.empty() || line.front() == '#') continue;
    const std::string at = "line " + std::to_string(number) + ": ";
    const std::size_t gap = line.find_first_of(" \t");
    const auto digest = parse_digest(line.substr(0, gap));
    if (!digest || gap == std::string_view::npos) {
      return unexpected(at + "wanted is the SHA-256 of a key (64 hexadecimal digits) and a name");
    }
    const std::string_view owner = line.substr(line.find_first_not_of(" \t", gap));
    if (!is_name(owner)) {
      return unexpected(at + "the name has 1 to " + std::to_string(kNameMax) +
                        " printable characters and no blanks");
    }
    if (table.entries_.size() == kKeysMax) {
      return unexpected("more than " + std::to_string(kKeysMax) + " keys");
    }
    table.entries_.push_back({.digest = *digest, .owner = std::string(owner)});
  }
  const auto before = [](const Entry& a, const Entry& b) { return a.digest < b.digest; };
  std::sort(table.entries_.begin(), table.entries_.end(), before);
  const auto twice =
      std::adjacent_find(table.entries_.begin(), table.entries_.end(),
                         [](const Entry& a, const Entry& b) { return a.digest == b.digest; });
  if (twice != table.entries_.end()) {
    return unexpected("the same key is there twice, for " + twice->owner + " and " +
                      std::next(twice)->owner);
  }
  return table;
}

std::string_view KeyTable::owner_of(std::string_view key) const noexcept {
  if (entries_.empty() || key.empty()) return {};
  const io::Sha256Digest digest = io::sha256(key);
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), digest,
      [](const Entry& entry, const io::Sha256Digest& wanted) { return entry.digest < wanted; });
  return found != entries_.end() && found->digest == digest ? std::string_view(found->owner)
                                                            : std::string_view();
}

}  // namespace weir::inline v0::gateway
