#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/config_check.h"
#include "weir/base/config_error.h"

namespace weir::inline v0::http {

/// The bounds of one HTTP message. Each bound has its own status, which tells the client what was
/// too large; the same bounds apply to upstream responses (502).
///
/// Lifetime: codecs keep a pointer to it; it must outlive them.
struct HttpLimits {
  static constexpr std::uint32_t kHeaderCountCap = 250;  // an index is one byte
  static constexpr std::uint32_t kHeadBytesCap = 1U
                                                 << 20U;  // offsets are 32 bits, heads are not big

  std::uint32_t head_bytes_max = 16 * 1024;          // start line and fields, CRLFs included: 431
  std::uint32_t header_count_max = 100;              // fields in a head: 431
  std::uint32_t uri_bytes_max = 8 * 1024;            // request target: 414
  std::uint32_t method_bytes_max = 32;               // method token: 501
  std::uint32_t chunk_extension_bytes_max = 256;     // extensions of one chunk: 400
  std::uint32_t message_extension_bytes_max = 4096;  // extensions of one message: 400
  std::uint32_t trailer_bytes_max = 4 * 1024;        // trailer section: 431
  std::uint32_t trailer_count_max = 32;              // fields in a trailer section: 431
  std::uint32_t informational_max = 8;               // 1xx before one final response: 502

  /// All errors. `region_bytes` is the size of the read region, which must hold a whole head or a
  /// whole trailer section.
  [[nodiscard]] ConfigErrors validate(std::size_t region_bytes) const {
    ConfigErrors errors;
    const auto within = [&](const char* key, std::uint64_t value, std::uint64_t low,
                            std::uint64_t high) { check_range(errors, key, value, low, high); };
    const std::uint64_t head_cap =
        region_bytes < kHeadBytesCap ? std::uint64_t{region_bytes} : std::uint64_t{kHeadBytesCap};
    within("head_bytes_max", head_bytes_max, 256, head_cap);
    within("header_count_max", header_count_max, 1, kHeaderCountCap);
    within("uri_bytes_max", uri_bytes_max, 16, head_bytes_max);
    within("method_bytes_max", method_bytes_max, 7, 256);
    within("chunk_extension_bytes_max", chunk_extension_bytes_max, 0, kHeadBytesCap);
    within("message_extension_bytes_max", message_extension_bytes_max, 0, std::uint64_t{1} << 30U);
    within("trailer_bytes_max", trailer_bytes_max, 2, head_cap);
    within("trailer_count_max", trailer_count_max, 0, kHeaderCountCap);
    within("informational_max", informational_max, 1, 1000);
    return errors;
  }

  bool operator==(const HttpLimits&) const = default;
};

}  // namespace weir::inline v0::http
