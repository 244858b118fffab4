// Any bytes as a recording: only an error, or decisions that fit into the bytes, is allowed. The
// header is made valid in every other run, so that what follows it is reached.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weir/base/assert.h"

#include "policy/recording.h"

namespace {

using weir::policy::read_recording;

void check(std::span<const std::byte> bytes) {
  const auto recording = read_recording(bytes);
  if (!recording) {
    WEIR_ASSERT(!recording.error().empty());
    return;
  }
  const std::size_t found = recording->decisions.size() + recording->torn;
  WEIR_ASSERT(found * weir::policy::kDecisionBytes <= bytes.size());
  for (std::size_t i = 0; i < recording->decisions.size(); ++i) {
    const weir::policy::RecordedDecision& one = recording->decisions[i];
    WEIR_ASSERT(one.reason < recording->header.reasons.size());
    WEIR_ASSERT(i == 0 || recording->decisions[i - 1].at <= one.at);
    WEIR_ASSERT(weir::policy::unpack(weir::policy::pack(one)) == one);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  weir::policy::RecordingHeader header;
  header.reasons = {"admitted", "overload"};
  std::string whole = weir::policy::encode_header(header);
  whole.append(reinterpret_cast<const char*>(data), size);
  check(std::as_bytes(std::span(whole)));
  return 0;
}
