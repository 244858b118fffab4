#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "http/h2/session_base.h"

namespace weir::inline v0::http::h2 {

/// A header list in the library's form, on the stack. The library copies it when it is submitted.
class NvList {
 public:
  void add(std::string_view name, std::string_view value) noexcept {
    entries_[size_++] = to_nv(name, value);
    bytes_ += name.size() + value.size() + 64;
  }
  /// Appends the fields; false if one may not be sent in HTTP/2, or if there are too many.
  [[nodiscard]] bool append(std::span<const Field> fields) noexcept;

  [[nodiscard]] const nghttp2_nv* data() const noexcept { return entries_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// About the memory that the library needs for it.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kFieldsMax = 160;

  [[nodiscard]] static nghttp2_nv to_nv(std::string_view name, std::string_view value) noexcept;

  std::array<nghttp2_nv, kFieldsMax> entries_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace weir::inline v0::http::h2
