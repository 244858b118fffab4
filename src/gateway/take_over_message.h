#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/enum_names.h"
#include "weir/base/result.h"
#include "weir/experimental/gateway/passed_sockets.h"

/// The messages of a take-over, each in one packet:
///   "weir"  version: 2 bytes  kind: 1 byte  { tag: 1 byte  length: 2 bytes  content }*
/// Numbers are big-endian. Records with an unknown tag are skipped, so that a later version can add
/// some; what an old reader would misunderstand needs a new version.
///
///   successor                         predecessor
///   kHello                        →
///                                 ←   kSockets, with the descriptors; or kRefused
///   … builds itself, accepts nothing yet …
///   kReady, which it has taken    →
///                                 ←   kReleased; or kRefused
///   accepts                           drains
namespace weir::inline v0::gateway {

inline constexpr std::uint16_t kTakeOverVersion = 1;
inline constexpr std::size_t kTakeOverSocketsMax = 128;
inline constexpr std::size_t kTakeOverBytesMax = std::size_t{48} * 1024;

enum class TakeOverKind : std::uint8_t { kHello = 1, kSockets, kRefused, kReady, kReleased };

struct TakeOverMessage {
  struct Socket {
    SocketRole role = SocketRole::kListen;
    bool held = false;
    std::string configured;
    bool operator==(const Socket&) const = default;
  };

  TakeOverKind kind = TakeOverKind::kHello;
  std::vector<Socket> sockets{};  // kSockets: as many as descriptors
  std::string ticket_keys{};      // kSockets: of TLS sessions; empty: there is no TLS
  std::string reason{};           // kRefused
  std::vector<bool> taken{};      // kReady: for each socket

  bool operator==(const TakeOverMessage&) const = default;
};

enum class TakeOverFault : std::uint8_t {
  kForeign,  // not such a message at all
  kVersion,  // of another version: take_over_version() tells which
  kBroken,   // cut off, or with content that cannot be
};
WEIR_ENUM_NAMES(TakeOverFault, "foreign", "version", "broken")

/// The message must be within the bounds above (asserted).
[[nodiscard]] std::string encode(const TakeOverMessage& message);
/// Promises: whatever the bytes are, the result is within the bounds above. Thread-safety: pure.
[[nodiscard]] Result<TakeOverMessage, TakeOverFault> decode_take_over(std::string_view bytes);
/// The version that a message names; 0 if it is not such a message.
[[nodiscard]] std::uint16_t take_over_version(std::string_view bytes) noexcept;

}  // namespace weir::inline v0::gateway
