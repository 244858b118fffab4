// Any bytes as an upstream's stream, for each kind of request: the result does not depend on how
// they are cut, views are valid, and no input yields a message that the framing rules forbid.

#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"

#include "fuzz/pieces.h"
#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

constexpr ResponseContext kContexts[] = {{http::Method::kGet, false},
                                         {http::Method::kHead, false},
                                         {http::Method::kConnect, false},
                                         {http::Method::kGet, true}};

void check(std::string_view bytes, ResponseContext context) {
  ResponseTranscript whole(context);
  whole.feed(bytes);
  ResponseTranscript pieces(context);
  fuzz::in_pieces(bytes, [&](std::string_view piece) { pieces.feed(piece); });
  WEIR_ASSERT(pieces.text() == whole.text());
  for (const SeenMessage& seen : whole.messages()) {
    WEIR_ASSERT(seen.status >= 100 && seen.status <= 599);
    if (context.method == http::Method::kHead || seen.status < 200 || seen.status == 204 ||
        seen.status == 304)
      WEIR_ASSERT(seen.body.empty());
    WEIR_ASSERT(!seen.tunnel || seen.status == 101 || context.method == http::Method::kConnect);
    WEIR_ASSERT(seen.status != 101 || context.upgrade_sent);
  }
  whole.close();
  pieces.close();
  WEIR_ASSERT(pieces.text() == whole.text());
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto context : weir::http::h1::kContexts)
    weir::http::h1::check({reinterpret_cast<const char*>(data), size}, context);
  return 0;
}
