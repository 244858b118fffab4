#include "successors.h"

#include <iostream>
#include <utility>
#include <vector>

#include "io/message_socket.h"

namespace weir::app {
namespace {

void complain(const std::string& path, io::IoError error) {
  std::cerr << "weir: admin.take_over_socket = " << path << ": ";
  if (error == io::IoError::kInUse) {
    std::cerr << "another process serves it, or it is not a socket; start with --take-over to "
                 "replace that process, or choose another path\n";
  } else {
    std::cerr << "it cannot be made (" << name_of(error)
              << "); its folder must exist and be writable\n";
  }
}

}  // namespace

bool Successors::serve(const std::string& path, io::Fd listening) {
  if (!listening) {
    auto opened = io::listen_for_messages(path);
    if (!opened) {
      complain(path, opened.error());
      return false;
    }
    listening = std::move(*opened);
  }
  server_ = std::make_unique<gateway::TakeOverServer>(
      setup_.loop,
      gateway::TakeOverServer::Setup{.offer =
                                         [this] {
                                           return gateway::TakeOverOffer{
                                               .sockets = setup_.gateway.listening_sockets(),
                                               .ticket_keys = setup_.gateway.ticket_keys()};
                                         },
                                     .begun = [this](int pid) { on_begun(pid); },
                                     .failed = [this](const std::string& why) { on_failed(why); },
                                     .released =
                                         [this](const std::vector<bool>& taken) {
                                           setup_.gateway.share_sockets(taken);
                                           setup_.released();
                                         },
                                     .say = setup_.say});
  active_ = server_->start(std::move(listening)).has_value();
  return active_;
}

void Successors::end() {
  if (active_ && !std::exchange(ending_, true)) {
    server_->stop(io::Callback<>::to<&Successors::on_ended>(*this));
  }
}

void Successors::on_begun(int pid) {
  // Should this process be told to end now, the other one has the sockets.
  share_all(true);
  setup_.say("process " + std::to_string(pid) + " has the listening sockets and starts");
}

void Successors::on_failed(const std::string& why) {
  share_all(false);
  setup_.say(why + "; this process serves on");
}

void Successors::share_all(bool shared) {
  const std::size_t count = setup_.gateway.listening_sockets().size();
  setup_.gateway.share_sockets(std::vector<bool>(count, shared));
}

}  // namespace weir::app
