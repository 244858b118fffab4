// Any bytes as an HTTP/2 client's stream: bounds hold, accepted messages are valid in HTTP/1.1 too,
// and the result does not depend on how the bytes are cut.

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/h2_play.h"
#include "fuzz/pieces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  // A recorded connection starts with its preface; other input is treated as frames.
  if (!bytes.starts_with("PRI "))
    bytes.insert(0, weir::http::h2::wire::preface() + weir::http::h2::wire::settings());
  const fuzz::H2Outcome whole = fuzz::play_h2(bytes, [] { return std::string_view::npos; });
  weir::Rng rng(fuzz::seed_of(bytes));
  const fuzz::H2Outcome pieces =
      fuzz::play_h2(bytes, [&] { return 1 + rng.below(rng.below(4) == 0 ? 4000 : 20); });
  WEIR_ASSERT(pieces == whole);
  return 0;
}
