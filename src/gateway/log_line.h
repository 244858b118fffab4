#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/gateway/gateway_config.h"

namespace weir::inline v0::gateway {

/// One line of a log, as pairs of key and value:
///
///   json   {"path":"/a b","status":200}    one object
///   text   path="/a b" status=200          a value is quoted if it is empty or not only letters,
///                                          digits and ._:/@,+*~%-
///
/// Promises: the line is ASCII without control characters, whatever the values are: in both forms
/// quotes and backslashes have a backslash before them, and other bytes are \u00XX. So a value
/// can neither end its quotes nor begin another line or pair. A line that does not fit is cut.
/// Thread-safety: one owner. Cost: never allocates.
class LogLine {
 public:
  LogLine(AccessLogFormat format, std::span<char> out) noexcept
      : out_(out), json_(format == AccessLogFormat::kJson) {
    if (json_) put('{');
  }

  void text(std::string_view key, std::string_view value) noexcept;
  void number(std::string_view key, std::uint64_t value) noexcept;
  /// As a text, because readers of JSON round large numbers.
  void number_text(std::string_view key, std::uint64_t value) noexcept;
  /// Milliseconds with three decimals.
  void millis(std::string_view key, Duration value) noexcept;
  [[nodiscard]] std::string_view finish() noexcept;

 private:
  void put(char c) noexcept {
    if (used_ < out_.size()) out_[used_++] = c;
  }
  void put_escaped(char c) noexcept;
  void put_number(std::uint64_t value) noexcept;
  void name(std::string_view key) noexcept;

  std::span<char> out_;
  std::size_t used_ = 0;
  const bool json_;
  bool begun_ = false;
};

}  // namespace weir::inline v0::gateway
