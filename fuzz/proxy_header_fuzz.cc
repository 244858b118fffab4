// Any bytes as a PROXY header: what is decided must not change with the bytes that follow, with how
// the bytes were cut, or with a second reading.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"

#include "http/proxy_header.h"

using weir::http::parse_proxy_header;
using weir::http::ProxyHeader;

namespace {

void check(const ProxyHeader& header, std::size_t given) {
  WEIR_ASSERT(header.size > 0 && header.size <= given);
  WEIR_ASSERT(header.size <= weir::http::kProxyHeaderBytesMax);
  WEIR_ASSERT(header.version == 2 || header.size <= weir::http::kProxyV1BytesMax);
  WEIR_ASSERT(header.source.ip == header.source.ip.normalized());
  const bool named = header.kind == ProxyHeader::Kind::kAddress;
  WEIR_ASSERT(named || header.source == ProxyHeader::Endpoint{});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto whole = parse_proxy_header(bytes);
  if (whole && *whole) check(**whole, size);
  if (whole && !*whole) WEIR_ASSERT(size < weir::http::kProxyHeaderBytesMax);

  // Byte by byte, as a slow sender: undecided until one byte decides, and then for good.
  const std::size_t most = std::min(size, weir::http::kProxyHeaderBytesMax + 1);
  bool decided = false;
  for (std::size_t cut = 0; cut <= most; ++cut) {
    const auto part = parse_proxy_header(bytes.first(cut));
    if (part && !*part) {
      WEIR_ASSERT(!decided);
      continue;
    }
    decided = true;
    WEIR_ASSERT(part.has_value() == whole.has_value());
    if (part) {
      WEIR_ASSERT(**part == **whole);
    } else {
      WEIR_ASSERT(part.error() == whole.error());
    }
  }
  WEIR_ASSERT(decided == (!whole || whole->has_value()));
  return 0;
}
