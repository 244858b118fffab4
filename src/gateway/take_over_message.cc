#include "take_over_message.h"

#include <limits>
#include <optional>

#include "weir/base/assert.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::string_view kMagic = "weir";
constexpr std::size_t kHeadBytes = 4 + 2 + 1;
constexpr std::size_t kAddressBytesMax = 256;
constexpr std::size_t kReasonBytesMax = 1024;
constexpr std::size_t kTicketKeysBytesMax = 1024;

enum Tag : std::uint8_t { kSocketTag = 1, kReasonTag, kTakenTag, kTicketKeysTag };

void put_record(std::string& out, Tag tag, std::string_view content) {
  WEIR_ASSERT(content.size() <= std::numeric_limits<std::uint16_t>::max());
  out += static_cast<char>(tag);
  out += static_cast<char>(content.size() >> 8U);
  out += static_cast<char>(content.size() & 0xFFU);
  out += content;
}

std::uint16_t number_at(std::string_view bytes, std::size_t at) noexcept {
  const auto high = static_cast<unsigned char>(bytes[at]);
  const auto low = static_cast<unsigned char>(bytes[at + 1]);
  return static_cast<std::uint16_t>(high << 8U | low);
}

std::optional<TakeOverMessage::Socket> socket_in(std::string_view content) {
  if (content.size() < 2 || content.size() > 2 + kAddressBytesMax) return std::nullopt;
  const auto role = static_cast<unsigned char>(content[0]);
  const auto held = static_cast<unsigned char>(content[1]);
  if (role > static_cast<unsigned char>(SocketRole::kTakeOver) || held > 1) return std::nullopt;
  return TakeOverMessage::Socket{.role = static_cast<SocketRole>(role),
                                 .held = held == 1,
                                 .configured = std::string(content.substr(2))};
}

/// False: the content cannot be.
bool read_record(TakeOverMessage& message, std::uint8_t tag, std::string_view content) {
  switch (tag) {
    case kSocketTag: {
      std::optional<TakeOverMessage::Socket> socket = socket_in(content);
      if (!socket || message.sockets.size() == kTakeOverSocketsMax) return false;
      message.sockets.push_back(std::move(*socket));
      return true;
    }
    case kReasonTag:
      message.reason = content.substr(0, kReasonBytesMax);
      for (char& c : message.reason) c = c < ' ' || c > '~' ? '?' : c;  // it goes to a log
      return true;
    case kTakenTag:
      if (content.size() > kTakeOverSocketsMax || !message.taken.empty()) return false;
      for (const char c : content) message.taken.push_back(c != 0);
      return true;
    case kTicketKeysTag:
      message.ticket_keys = content;
      return content.size() <= kTicketKeysBytesMax;
    default:
      return true;
  }
}

}  // namespace

std::string encode(const TakeOverMessage& message) {
  WEIR_ASSERT(message.sockets.size() <= kTakeOverSocketsMax &&
              message.taken.size() <= kTakeOverSocketsMax);
  std::string out(kMagic);
  out += static_cast<char>(kTakeOverVersion >> 8U);
  out += static_cast<char>(kTakeOverVersion & 0xFFU);
  out += static_cast<char>(message.kind);
  for (const TakeOverMessage::Socket& one : message.sockets) {
    std::string content;
    content += static_cast<char>(one.role);
    content += static_cast<char>(one.held ? 1 : 0);
    content += one.configured.substr(0, kAddressBytesMax);
    put_record(out, kSocketTag, content);
  }
  if (!message.ticket_keys.empty()) put_record(out, kTicketKeysTag, message.ticket_keys);
  if (!message.reason.empty()) {
    put_record(out, kReasonTag, std::string_view(message.reason).substr(0, kReasonBytesMax));
  }
  if (!message.taken.empty()) {
    std::string content;
    for (const bool one : message.taken) content += static_cast<char>(one ? 1 : 0);
    put_record(out, kTakenTag, content);
  }
  return out;
}

std::uint16_t take_over_version(std::string_view bytes) noexcept {
  return bytes.size() >= kHeadBytes && bytes.starts_with(kMagic) ? number_at(bytes, 4) : 0;
}

Result<TakeOverMessage, TakeOverFault> decode_take_over(std::string_view bytes) {
  if (bytes.size() < kHeadBytes || !bytes.starts_with(kMagic)) {
    return unexpected(TakeOverFault::kForeign);
  }
  if (number_at(bytes, 4) != kTakeOverVersion) return unexpected(TakeOverFault::kVersion);
  const auto kind = static_cast<std::uint8_t>(bytes[6]);
  if (kind < static_cast<std::uint8_t>(TakeOverKind::kHello) ||
      kind > static_cast<std::uint8_t>(TakeOverKind::kReleased)) {
    return unexpected(TakeOverFault::kBroken);
  }
  TakeOverMessage message{.kind = static_cast<TakeOverKind>(kind)};
  std::string_view rest = bytes.substr(kHeadBytes);
  while (!rest.empty()) {
    if (rest.size() < 3) return unexpected(TakeOverFault::kBroken);
    const std::size_t size = number_at(rest, 1);
    if (rest.size() - 3 < size) return unexpected(TakeOverFault::kBroken);
    if (!read_record(message, static_cast<std::uint8_t>(rest[0]), rest.substr(3, size))) {
      return unexpected(TakeOverFault::kBroken);
    }
    rest.remove_prefix(3 + size);
  }
  return message;
}

}  // namespace weir::inline v0::gateway
