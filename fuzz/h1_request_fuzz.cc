// Any bytes as a client's stream: the result does not depend on how the bytes are cut, and an
// accepted request, rewritten as a gateway does, is parsed as the same request again.

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/experimental/http/h1/serializer.h"

#include "fuzz/pieces.h"
#include "http/h1/transcript_testing.h"

namespace weir::inline v0::http::h1 {
namespace {

bool goes_on(const std::string& name) {
  const http::FieldId id = field_id(name);
  return !is_hop_by_hop(id) && id != http::FieldId::kHost && id != http::FieldId::kContentLength &&
         id != http::FieldId::kExpect;
}

void forward_and_compare(const SeenMessage& seen) {
  std::string buffer(64 * 1024, '\0');
  HeadWriter writer(buffer);
  writer.request(seen.method, seen.path);
  writer.field("host", seen.authority.empty() ? "none" : seen.authority);
  SeenMessage::Fields sent;
  for (const auto& [name, value] : seen.fields) {
    if (!goes_on(name)) continue;
    writer.field(name, value);
    sent.emplace_back(name, value);
  }
  writer.content_length(seen.body.size());
  const auto size = writer.end();
  WEIR_ASSERT(size.has_value());

  http::HttpLimits limits;  // room for the fields that a gateway adds
  limits.header_count_max = 110;
  limits.head_bytes_max = 60 * 1024;
  RequestTranscript again(limits);
  again.feed(buffer.substr(0, *size) + seen.body);
  WEIR_ASSERT(again.messages().size() == 1 && again.complete() == 1);
  WEIR_ASSERT(again.error() == http::ParseError::kNone && again.left_over().empty());
  const SeenMessage& got = again.messages().front();
  WEIR_ASSERT(got.method == seen.method && got.path == seen.path && got.body == seen.body);
  SeenMessage::Fields received;
  for (const auto& field : got.fields)
    if (goes_on(field.first)) received.push_back(field);
  WEIR_ASSERT(received == sent);
}

void check(std::string_view bytes) {
  RequestTranscript whole;
  whole.feed(bytes);
  for (const SeenMessage& seen : whole.messages()) {
    for (const auto& [name, value] : seen.fields) {
      WEIR_ASSERT(is_valid_field_name(name) && is_valid_field_value(value));
      WEIR_ASSERT(value.empty() || (value.front() != ' ' && value.back() != ' '));
    }
    if (seen.complete && !seen.tunnel) forward_and_compare(seen);
  }
  RequestTranscript pieces;
  fuzz::in_pieces(bytes, [&](std::string_view piece) { pieces.feed(piece); });
  WEIR_ASSERT(pieces.text() == whole.text());
  WEIR_ASSERT(pieces.error() == whole.error());
  if (bytes.size() <= 512) WEIR_ASSERT(byte_by_byte(RequestTranscript(), bytes) == whole.text());
}

}  // namespace
}  // namespace weir::inline v0::http::h1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::http::h1::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
