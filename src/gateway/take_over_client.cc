#include "gateway/take_over_client.h"

#include <utility>

#include "io/message_socket.h"
#include "take_over_message.h"

namespace weir::inline v0::gateway {
namespace {

auto no_take_over(std::string message, bool nobody = false) {
  return unexpected(TakeOverError{.nobody = nobody, .message = std::move(message)});
}

std::string why_no_connection(io::IoError error) {
  switch (error) {
    case io::IoError::kDenied:
      return "permission denied; it belongs to another user";
    case io::IoError::kAgain:
      return "too many processes wait for an answer";
    case io::IoError::kInvalid:
      return "the path is too long";
    default:
      return "it is not the socket of a running weir (" + std::string(name_of(error)) + ")";
  }
}

std::string why_not_read(TakeOverFault fault, std::string_view bytes) {
  if (fault != TakeOverFault::kVersion) return "its answer is not of a take-over";
  return "the running process speaks version " + std::to_string(take_over_version(bytes)) +
         " of the take-over and this one version " + std::to_string(kTakeOverVersion) +
         ": stop it and start this one without --take-over";
}

}  // namespace

Result<TakeOver, TakeOverError> TakeOver::begin(const std::string& path, Duration at_most) {
  const std::string cannot = "cannot take over through " + path + ": ";
  auto control = io::dial_for_messages(path);
  if (!control) {
    if (control.error() == io::IoError::kRefused)
      return no_take_over("nobody serves " + path, true);
    return no_take_over(cannot + why_no_connection(control.error()));
  }
  const auto peer = io::peer_process(control->get());
  // The sockets of a stranger would bring its clients here.
  if (!peer || !io::may_command(*peer)) return no_take_over(cannot + "it belongs to another user");
  static_cast<void>(io::send_message(control->get(), encode({.kind = TakeOverKind::kHello})));
  if (!io::await_message(control->get(), at_most)) {
    return no_take_over(cannot + "the running process does not answer");
  }
  auto answer = io::receive_message(
      control->get(), {.bytes_max = kTakeOverBytesMax, .descriptors_max = kTakeOverSocketsMax});
  if (!answer) return no_take_over(cannot + "the running process does not answer");
  const auto decoded = decode_take_over(answer->bytes);
  if (!decoded) return no_take_over(cannot + why_not_read(decoded.error(), answer->bytes));
  if (decoded->kind == TakeOverKind::kRefused) return no_take_over(cannot + decoded->reason);
  const std::size_t count = decoded->sockets.size();
  if (decoded->kind != TakeOverKind::kSockets || count == 0 ||
      count != answer->descriptors.size() ||
      decoded->sockets.back().role != SocketRole::kTakeOver) {
    return no_take_over(cannot + "its answer is not of a take-over");
  }
  TakeOver over;
  over.control_ = std::move(*control);
  over.pid_ = peer->pid;
  over.ticket_keys_ = decoded->ticket_keys;
  over.listener_ = std::move(answer->descriptors.back());
  for (std::size_t i = 0; i + 1 < count; ++i) {
    over.sockets_.push_back({.fd = std::move(answer->descriptors[i]),
                             .role = decoded->sockets[i].role,
                             .configured = decoded->sockets[i].configured,
                             .name = {},
                             .held = decoded->sockets[i].held});
  }
  return over;
}

Result<TakeOver::End, TakeOverError> TakeOver::finish(const std::vector<bool>& taken,
                                                      Duration at_most) {
  std::vector<bool> all = taken;
  all.push_back(true);  // the socket of the take-over itself
  const io::Fd control = std::move(control_);
  const std::string cannot = "process " + std::to_string(pid_) + " serves on: ";
  const TakeOverMessage ready{.kind = TakeOverKind::kReady, .taken = std::move(all)};
  // If it cannot be sent, nothing can be received either.
  static_cast<void>(io::send_message(control.get(), encode(ready)));
  const bool late = !io::await_message(control.get(), at_most);
  // From here on it cannot answer: what it has sent until now decides, for both sides.
  if (late) io::refuse_messages(control.get());
  const auto answer =
      io::receive_message(control.get(), {.bytes_max = kTakeOverBytesMax, .descriptors_max = 0});
  if (!answer) {
    if (!late) return End::kAlone;
    return no_take_over(cannot + "it did not answer in time");
  }
  const auto decoded = decode_take_over(answer->bytes);
  if (!decoded) return no_take_over(cannot + why_not_read(decoded.error(), answer->bytes));
  if (decoded->kind == TakeOverKind::kReleased) return End::kReleased;
  return no_take_over(cannot + decoded->reason);
}

}  // namespace weir::inline v0::gateway
