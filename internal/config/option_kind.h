#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/enum_names.h"
#include "weir/experimental/config/option_apply.h"

namespace weir::inline v0::config {

/// How an option is written in the file.
enum class OptionKind : std::uint8_t {
  kFlag,       // true, false
  kCount,      // 17
  kSize,       // "4GiB", or bytes
  kTime,       // "500ms"; a bare number where the name ends in _ms
  kRatio,      // 0.85: any real number
  kText,       // "x-api-key"
  kTexts,      // ["GET", "HEAD"]
  kChoice,     // one of a few words
  kChoices,    // several of them, in order
  kAddress,    // "127.0.0.1:80"; "" for none
  kAddresses,  // several of them
  kRanges,     // ["10.0.0.0/8"]
  kSources,    // ["127.0.0.1:80 weight=2", "dns:api:8080"]
};

WEIR_ENUM_NAMES(OptionKind, "flag", "count", "size", "time", "ratio", "text", "texts", "choice",
                "choices", "address", "addresses", "ranges", "sources")

[[nodiscard]] constexpr bool is_list(OptionKind kind) noexcept {
  return kind == OptionKind::kTexts || kind == OptionKind::kChoices ||
         kind == OptionKind::kAddresses || kind == OptionKind::kRanges ||
         kind == OptionKind::kSources;
}

/// One row of options.def, without its field.
struct OptionRow {
  std::string_view section;  // "admission.limit", "upstream", "upstream.tls", "route"
  std::string_view name;
  OptionKind kind = OptionKind::kFlag;
  double low = 0;  // range, when low < high; Time in ms, Size in bytes
  double high = 0;
  std::string_view unit;
  OptionApply apply = OptionApply::kRestart;
  std::string_view help;
  std::string_view field;  // "admission.limit.min_limit"

  [[nodiscard]] bool has_range() const noexcept { return low < high; }
  [[nodiscard]] std::string key() const { return std::string(section) + "." + std::string(name); }
};

}  // namespace weir::inline v0::config
