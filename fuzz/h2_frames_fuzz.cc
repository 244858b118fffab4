// The input selects frames, mostly valid ones, so that code behind the first error is reached:
// streams in every state, split header blocks, windows, resets, all on one connection.

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/h2_play.h"
#include "fuzz/pieces.h"

namespace {

using namespace weir::http::h2::wire;

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::string bytes() {
    std::string out = preface() + settings();
    while (at_ != end_ && out.size() < 200'000) out += next();
    return out;
  }

 private:
  std::uint32_t take() { return at_ == end_ ? 0 : *at_++; }
  std::uint32_t stream() { return 2 * (take() % 16) + 1; }
  std::uint32_t fresh() {
    last_ += 2;
    return last_;
  }
  std::string text(std::uint32_t most) {
    const std::uint32_t wanted = take() % most;
    std::string out;
    while (out.size() < wanted && at_ != end_) out += static_cast<char>(*at_++);
    return out;
  }

  std::string fields() {
    Fields all = take() % 4 == 0 ? post() : get();
    for (std::uint32_t n = take() % 4; n > 0; --n) all.emplace_back(text(12), text(40));
    if (take() % 8 == 0) all.emplace_back("content-length", std::to_string(take()));
    if (take() % 16 == 0) all.erase(all.begin() + take() % 4);
    std::string out = block(all);
    if (take() % 8 == 0) out += indexed_literal("x-i", text(30)) + index(62 + take() % 3);
    if (take() % 16 == 0) out += text(20);
    return out;
  }

  std::string next() {
    const std::uint32_t flags = take();
    const std::uint32_t end = flags & 1U;
    switch (take() % 16) {
      case 0:
      case 1:
      case 2:
        return headers_raw(fresh(), fields(), kEndHeaders | end);
      case 3: {
        const std::uint32_t id = fresh();
        return headers_raw(id, fields(), end) + continuation(id, text(50), 0) +
               continuation(id, literal("x", "y"));
      }
      case 4:
      case 5:
        return data(stream(), text(200), end);
      case 6:
        return data(stream(), u8(take()) + text(200), end | kPadded);
      case 7:
        return headers_raw(stream(), literal("t", text(9)), kEndHeaders | kEnd);
      case 8:
        return rst(stream(), take());
      case 9:
        return window_update(flags % 3 == 0 ? 0 : stream(), take() << (take() % 32));
      case 10:
        return settings({{take() % 10, take() << (take() % 32)}});
      case 11:
        return ping(flags & 1U);
      case 12:
        return priority(stream(), stream());
      case 13:
        return settings_ack();
      case 14:
        return frame(take(), flags, stream(), text(30));
      default:
        return goaway(stream(), take());
    }
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint32_t last_ = static_cast<std::uint32_t>(-1);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes = Script(data, size).bytes();
  const fuzz::H2Outcome whole = fuzz::play_h2(bytes, [] { return std::string_view::npos; });
  weir::Rng rng(fuzz::seed_of(bytes));
  WEIR_ASSERT(fuzz::play_h2(bytes, [&] { return 1 + rng.below(40); }) == whole);
  return 0;
}
