#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "weir/experimental/metrics/histogram.h"
#include "weir/experimental/metrics/metric_info.h"

namespace weir::inline v0::metrics {

/// Writes a page of metrics in Prometheus' text exposition format (0.0.4) into a buffer.
///
/// Use: family(info), then its samples, then the next family. Label values are in the order of
/// info.labels; a bug in the caller (wrong number of values, a sample without a family) aborts.
/// Promises: HELP and TYPE are written once, before the first sample; label values and help are
/// escaped; histogram buckets are cumulative and end with +Inf, _sum, _count. A sample or histogram
/// that does not fit is left out completely, and every later write is refused too, so the page is a
/// valid prefix of the full page.
/// Thread-safety: none. Cost: O(bytes written), no allocation, throws nothing.
/// Lifetime: borrows the buffer and, until the next family(), the texts of `info`.
class TextWriter {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  explicit TextWriter(std::span<char> buffer) noexcept : buffer_(buffer) {}

  /// Starts a family. False if it does not fit.
  bool family(const MetricInfo& info) noexcept;

  bool sample(std::span<const std::string_view> labels, std::uint64_t value) noexcept;
  bool sample(std::span<const std::string_view> labels, double value) noexcept;
  bool sample(std::span<const std::string_view> labels, const HistogramView& value) noexcept;
  /// The same for any arithmetic type. Signed integers are written as doubles.
  template <class Value>
  bool sample(std::initializer_list<std::string_view> labels, const Value& value) noexcept {
    const std::span<const std::string_view> values(labels.begin(), labels.size());
    if constexpr (std::is_unsigned_v<Value>) {
      return sample(values, static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return sample(values, static_cast<double>(value));
    } else {
      return sample(values, value);
    }
  }

  /// The text written so far: whole lines.
  [[nodiscard]] std::string_view text() const noexcept { return {buffer_.data(), used_}; }
  /// Whether something was left out.
  [[nodiscard]] bool full() const noexcept { return full_; }

 private:
  class Line;
  bool commit(const Line& line) noexcept;
  template <class Value>
  bool plain_sample(std::span<const std::string_view> labels, Value value) noexcept;
  void check_sample(std::span<const std::string_view> labels, bool histogram) const noexcept;

  std::span<char> buffer_;
  std::size_t used_ = 0;
  bool full_ = false;
  MetricInfo current_;
  std::size_t label_count_ = 0;
};

}  // namespace weir::inline v0::metrics
