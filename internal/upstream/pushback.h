#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "weir/base/time.h"

#include "policy/send_again.h"
#include "upstream/response_head.h"

namespace weir::inline v0::upstream {

[[nodiscard]] inline std::optional<Duration> pushback_number(std::string_view text,
                                                             Duration unit) noexcept {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return unit * value;
}

/// What the answer says about another attempt. A Retry-After that is a date is left to the client;
/// a grpc-retry-pushback-ms that is negative or not a number asks for none.
[[nodiscard]] inline std::optional<policy::Pushback> pushback_of(
    const ResponseHead& head) noexcept {
  const auto weir = pushback_number(head.headers.value(http::FieldId::kXWeirRetryAfterMs),
                                    std::chrono::milliseconds(1));
  if (weir) return policy::Pushback{.stop = false, .wait = *weir};
  const std::string_view grpc = head.headers.value(http::FieldId::kGrpcRetryPushbackMs);
  if (!grpc.empty()) {
    const auto ms = pushback_number(grpc, std::chrono::milliseconds(1));
    return policy::Pushback{.stop = !ms, .wait = ms.value_or(Duration(0))};
  }
  const std::string_view text = head.headers.value(http::FieldId::kRetryAfter);
  if (text.empty()) return std::nullopt;
  const auto seconds = pushback_number(text, std::chrono::seconds(1));
  if (!seconds) return policy::Pushback{.stop = true, .wait = {}};
  return policy::Pushback{.stop = false, .wait = *seconds};
}

}  // namespace weir::inline v0::upstream
