#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/io/error.h"
#include "weir/experimental/io/fd.h"

/// Messages between two processes of one machine, over a Unix socket that keeps their boundaries
/// (SOCK_SEQPACKET). A message can carry descriptors.
namespace weir::inline v0::io {

/// Listens at `path`; only the owner may connect (mode 0600 is set before anybody can). A file that
/// a dead process left there is replaced. kInUse: a process listens there, or the file is no
/// socket.
[[nodiscard]] Result<Fd, IoError> listen_for_messages(const std::string& path);

/// kRefused: nobody listens there. kAgain: too many others are waiting to be accepted.
[[nodiscard]] Result<Fd, IoError> dial_for_messages(const std::string& path);

/// Sends the whole message or nothing; the receiver gets duplicates of the descriptors. Does not
/// block: kAgain if the peer has not read earlier messages.
[[nodiscard]] Result<void, IoError> send_message(int fd, std::string_view bytes,
                                                 std::span<const int> descriptors = {});

struct Message {
  std::string bytes;
  std::vector<Fd> descriptors;
};
struct MessageBounds {
  std::size_t bytes_max = 0;
  std::size_t descriptors_max = 0;  // at most 253, the kernel's own bound
};
/// Does not block: kAgain if there is none. kEof: the peer has closed, or sent an empty message.
/// kInvalid: the message exceeded a bound; it and its descriptors are gone.
[[nodiscard]] Result<Message, IoError> receive_message(int fd, const MessageBounds& bounds);

/// Blocks until there is a message or the peer has closed. False: neither within `at_most`.
[[nodiscard]] bool await_message(int fd, Duration at_most);

/// Nothing is received any more, except what the peer has sent before: its next send fails.
void refuse_messages(int fd) noexcept;

/// The process at the other end, as the kernel knows it.
struct PeerProcess {
  std::uint32_t user = 0;
  int pid = 0;
};
[[nodiscard]] std::optional<PeerProcess> peer_process(int fd) noexcept;
/// Whether that process runs as the same user as this one, or as root.
[[nodiscard]] bool may_command(const PeerProcess& peer) noexcept;

}  // namespace weir::inline v0::io
