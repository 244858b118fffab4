#include "canned_responses.h"

namespace weir::inline v0::inline server {
namespace {

#define WEIR_CANNED(line) "HTTP/1.1 " line "\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
#define WEIR_CANNED_503                                                         \
  "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\n" \
  "x-weir-reason: no_place\r\n"

struct Canned {
  unsigned status;
  std::string_view text;
};

constexpr Canned kCanned[] = {
    {400, WEIR_CANNED("400 Bad Request")},
    {408, WEIR_CANNED("408 Request Timeout")},
    {413, WEIR_CANNED("413 Content Too Large")},
    {414, WEIR_CANNED("414 URI Too Long")},
    {417, WEIR_CANNED("417 Expectation Failed")},
    {431, WEIR_CANNED("431 Request Header Fields Too Large")},
    {501, WEIR_CANNED("501 Not Implemented")},
    {503, WEIR_CANNED_503 "connection: close\r\n\r\n"},
    {505, WEIR_CANNED("505 HTTP Version Not Supported")},
};

constexpr std::string_view k503Keep = WEIR_CANNED_503 "\r\n";

#undef WEIR_CANNED
#undef WEIR_CANNED_503

}  // namespace

std::string_view canned_close(unsigned status) noexcept {
  for (const Canned& canned : kCanned) {
    if (canned.status == status) return canned.text;
  }
  return kCanned[0].text;
}

std::string_view canned_503_keep() noexcept {
  return k503Keep;
}

}  // namespace weir::inline v0::inline server
