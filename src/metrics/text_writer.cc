#include "weir/experimental/metrics/text_writer.h"

#include <cmath>
#include <cstring>

#include "weir/base/assert.h"
#include "weir/base/number_text.h"

namespace weir::inline v0::metrics {

/// Builds lines in the free part of the buffer; they become part of the page when committed.
class TextWriter::Line {
 public:
  explicit Line(std::span<char> room) noexcept : room_(room) {}

  void put(std::string_view text) noexcept {
    if (overflow_ || text.size() > room_.size() - size_) {
      overflow_ = true;
      return;
    }
    if (!text.empty()) std::memcpy(room_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  /// Help texts escape backslash and newline, label values also the quote.
  void put_escaped(std::string_view text, bool quote) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\') {
        put("\\\\");
      } else if (c == '\n') {
        put("\\n");
      } else if (quote && c == '"') {
        put("\\\"");
      } else {
        put(text.substr(i, 1));
      }
    }
  }

  void put(std::uint64_t value) noexcept { put(NumberText(value).view()); }

  void put(double value) noexcept {
    if (std::isnan(value)) return put("NaN");
    if (std::isinf(value)) return put(value > 0 ? "+Inf" : "-Inf");
    put(NumberText(value).view());
  }

  /// name suffix {labels…, le="…"}
  void put_series(const MetricInfo& info, std::string_view suffix,
                  std::span<const std::string_view> values, const double* le = nullptr) noexcept {
    put(info.name);
    put(suffix);
    if (values.empty() && le == nullptr) return;
    char opening = '{';
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(std::string_view(&opening, 1));
      opening = ',';
      put(label_name(info.labels, i));
      put("=\"");
      put_escaped(values[i], true);
      put("\"");
    }
    if (le != nullptr) {
      put(std::string_view(&opening, 1));
      put("le=\"");
      put(*le);
      put("\"");
    }
    put("}");
  }

  [[nodiscard]] bool overflow() const noexcept { return overflow_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<char> room_;
  std::size_t size_ = 0;
  bool overflow_ = false;
};

bool TextWriter::commit(const Line& line) noexcept {
  if (full_ || line.overflow()) {
    full_ = true;
    return false;
  }
  used_ += line.size();
  return true;
}

bool TextWriter::family(const MetricInfo& info) noexcept {
  current_ = info;
  label_count_ = label_count(info.labels);
  Line line(buffer_.subspan(used_));
  line.put("# HELP ");
  line.put(info.name);
  line.put(" ");
  line.put_escaped(info.help, false);
  line.put("\n# TYPE ");
  line.put(info.name);
  line.put(" ");
  line.put(name_of(info.type));
  line.put("\n");
  return commit(line);
}

void TextWriter::check_sample(std::span<const std::string_view> labels,
                              bool histogram) const noexcept {
  WEIR_ASSERT(!current_.name.empty());
  WEIR_ASSERT(labels.size() == label_count_);
  WEIR_ASSERT((current_.type == MetricType::kHistogram) == histogram);
}

template <class Value>
bool TextWriter::plain_sample(std::span<const std::string_view> labels, Value value) noexcept {
  check_sample(labels, false);
  Line line(buffer_.subspan(used_));
  line.put_series(current_, "", labels);
  line.put(" ");
  line.put(value);
  line.put("\n");
  return commit(line);
}

bool TextWriter::sample(std::span<const std::string_view> labels, std::uint64_t value) noexcept {
  return plain_sample(labels, value);
}

bool TextWriter::sample(std::span<const std::string_view> labels, double value) noexcept {
  return plain_sample(labels, value);
}

bool TextWriter::sample(std::span<const std::string_view> labels,
                        const HistogramView& value) noexcept {
  check_sample(labels, true);
  WEIR_ASSERT(value.counts.size() == value.bounds.size() + 1);
  Line line(buffer_.subspan(used_));
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < value.counts.size(); ++i) {
    cumulative += value.counts[i];
    const double bound = i < value.bounds.size() ? value.bounds[i] : HUGE_VAL;
    line.put_series(current_, "_bucket", labels, &bound);
    line.put(" ");
    line.put(cumulative);
    line.put("\n");
  }
  line.put_series(current_, "_sum", labels);
  line.put(" ");
  line.put(value.sum);
  line.put("\n");
  line.put_series(current_, "_count", labels);
  line.put(" ");
  line.put(cumulative);
  line.put("\n");
  return commit(line);
}

}  // namespace weir::inline v0::metrics
