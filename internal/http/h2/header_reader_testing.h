#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include "http/h2/frame_writer_testing.h"

namespace weir::inline v0::http::h2::wire {

/// Decodes the header blocks of one connection, in order.
class HeaderReader {
 public:
  HeaderReader() { nghttp2_hd_inflate_new(&inflater_); }
  HeaderReader(const HeaderReader&) = delete;
  HeaderReader& operator=(const HeaderReader&) = delete;
  ~HeaderReader() { nghttp2_hd_inflate_del(inflater_); }

  [[nodiscard]] Fields read(std::string_view block) {
    Fields fields;
    const auto* in = reinterpret_cast<const std::uint8_t*>(block.data());
    std::size_t left = block.size();
    int flags = 0;
    while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
      nghttp2_nv nv;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &nv, &flags, in, left, 1);
      EXPECT_GE(used, 0);
      if (used < 0) break;
      in += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      fields.emplace_back(std::string(reinterpret_cast<char*>(nv.name), nv.namelen),
                          std::string(reinterpret_cast<char*>(nv.value), nv.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return fields;
  }

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace weir::inline v0::http::h2::wire
