#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app::top {

enum class KeyKind : std::uint8_t {
  kPoint,  // a character: `point`
  kEnter,
  kEscape,
  kBackspace,
  kTab,
  kBackTab,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kInterrupt,  // Ctrl-C
  kSuspend,    // Ctrl-Z
  kRedraw,     // Ctrl-L
  kOther,      // a sequence that means nothing here
};

struct Key {
  KeyKind kind = KeyKind::kOther;
  char32_t point = 0;

  bool operator==(const Key&) const = default;
};

/// Makes keys of the bytes that a terminal sends, however they are cut. Thread-safety: none.
class KeyReader {
 public:
  [[nodiscard]] std::vector<Key> feed(std::string_view bytes);
  /// Bytes are kept that may be the start of a sequence: if nothing follows for a moment, call
  /// flush(), because an Escape alone looks like that.
  [[nodiscard]] bool is_waiting() const noexcept { return !kept_.empty(); }
  [[nodiscard]] std::vector<Key> flush();

 private:
  std::string kept_;
};

}  // namespace weir::app::top
