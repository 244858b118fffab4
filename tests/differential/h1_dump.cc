// Prints how the codec parses byte streams, to compare with parsers in other languages.
//
// Input, repeated: a four-byte little-endian size, then a client's stream of that size. Output: one
// line per stream, of tab-separated items:
//   request METHOD TARGET-PATH AUTHORITY VERSION KEEP BODY N NAME VALUE… M NAME VALUE…
//   tunnel  (the same: the rest of the stream is not HTTP any more)
//   error REASON | rest COUNT
// Every string is hex; an item ends with ';'.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "http/h1/transcript_testing.h"

namespace {

using weir::http::h1::RequestTranscript;
using weir::http::h1::SeenMessage;

std::string hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "x";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string fields(const SeenMessage::Fields& list) {
  std::string out = "\t" + std::to_string(list.size());
  for (const auto& [name, value] : list) out += "\t" + hex(name) + "\t" + hex(value);
  return out;
}

std::string describe(const RequestTranscript& transcript) {
  std::string out;
  for (const SeenMessage& m : transcript.messages()) {
    if (!m.complete && !m.tunnel) continue;
    out += m.tunnel ? "tunnel" : "request";
    out += "\t" + hex(m.method) + "\t" + hex(m.path) + "\t" + hex(m.authority) + "\t" +
           (m.http11 ? "1.1" : "1.0") + "\t" + (m.keep_alive ? "keep" : "close") + "\t" +
           hex(m.body) + fields(m.fields) + fields(m.trailers) + ";";
  }
  if (transcript.error() != weir::http::ParseError::kNone)
    return out + "error\t" + std::string(to_string(transcript.error()));
  return out + "rest\t" + std::to_string(transcript.left_over().size());
}

}  // namespace

int main() {
  unsigned char size_bytes[4];
  while (std::fread(size_bytes, 1, sizeof size_bytes, stdin) == sizeof size_bytes) {
    std::uint32_t size = 0;
    for (int i = 3; i >= 0; --i) size = size << 8U | size_bytes[i];
    std::string stream(size, '\0');
    if (std::fread(stream.data(), 1, size, stdin) != size) return 1;
    RequestTranscript transcript;
    transcript.feed(stream);
    std::puts(describe(transcript).c_str());
  }
  return 0;
}
