// Like h1_differential_fuzz, for an upstream's response to a GET, including the close of its
// connection.

#include <cstdint>
#include <string_view>

#include "fuzz/http_parser_judge.h"

namespace weir::inline v0::http::h1 {
namespace {

/// Compares ours with the first message of `bytes`; returns its size, or 0 if they may differ.
std::size_t compare(const SeenMessage& ours, std::string_view bytes) {
  if (fuzz::is_misread(ours)) return 0;
  fuzz::Judge judge(HTTP_RESPONSE);
  const std::size_t used = judge.read_one(bytes, true);
  if (judge.misread_a_tab()) return 0;
  WEIR_ASSERT(judge.error() == HPE_OK);
  fuzz::require_same_content(ours, judge.message());
  WEIR_ASSERT(ours.status == judge.message().status);
  return used;
}

void check(std::string_view bytes) {
  ResponseTranscript ours;
  ours.feed(bytes);
  ours.close();
  std::size_t at = 0;
  for (const SeenMessage& seen : ours.messages()) {
    const bool interim = seen.status < 200;
    if (!seen.complete && !interim) return;
    const std::size_t used = compare(seen, bytes.substr(at));
    if (used == 0) return;
    at += used;
  }
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::http::h1::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
