// Input that the codec accepts from a client must mean the same to http_parser: same requests, same
// fields, same bodies, same end of each. http_parser may accept more; it may refuse only what
// is_known_refusal() lists.

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/http_parser_judge.h"

namespace weir::inline v0::http::h1 {
namespace {

/// http_parser has a fixed list of methods and a narrower URL grammar.
bool is_known_refusal(const fuzz::Judge& judge) {
  return judge.error() == HPE_INVALID_METHOD || judge.error() == HPE_INVALID_URL;
}

bool is_same_target(std::string_view raw, const SeenMessage& ours) {
  if (ours.method == "CONNECT") return raw == ours.authority;
  if (raw == ours.path) return true;
  const std::size_t scheme = raw.find("://");
  if (scheme == std::string_view::npos) return false;
  raw.remove_prefix(scheme + 3);
  const bool without_path = ours.path == (ours.method == "OPTIONS" ? "*" : "/");
  return raw == ours.authority + ours.path || (without_path && raw == ours.authority);
}

/// Compares ours with the first message of `bytes`; returns its size, or 0 if they may differ.
std::size_t compare(const SeenMessage& ours, std::string_view bytes) {
  if (fuzz::is_misread(ours)) return 0;
  fuzz::Judge judge(HTTP_REQUEST);
  const std::size_t used = judge.read_one(bytes, false);
  if (judge.misread_a_tab()) return 0;
  if (judge.error() != HPE_OK) {
    WEIR_ASSERT(is_known_refusal(judge));
    return 0;
  }
  const SeenMessage& theirs = judge.message();
  fuzz::require_same_content(ours, theirs);
  WEIR_ASSERT(ours.method == theirs.method);
  WEIR_ASSERT(is_same_target(theirs.path, ours));
  // "close" and "keep-alive" together in HTTP/1.0: http_parser keeps alive, we close.
  if (!ours.tunnel && ours.http11 && !judge.may_miss_a_connection_option())
    WEIR_ASSERT(ours.keep_alive == theirs.keep_alive);
  return used;
}

void check(std::string_view bytes) {
  RequestTranscript ours;
  ours.feed(bytes);
  std::size_t at = 0;
  for (const SeenMessage& seen : ours.messages()) {
    if (!seen.complete && !seen.tunnel) return;
    const std::size_t used = compare(seen, bytes.substr(at));
    if (used == 0 || seen.tunnel) return;
    at += used;
  }
  if (ours.error() == http::ParseError::kNone) WEIR_ASSERT(bytes.substr(at) == ours.left_over());
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::http::h1::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
