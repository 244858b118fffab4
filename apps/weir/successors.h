#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/fd.h"
#include "weir/experimental/io/loop.h"

#include "gateway/take_over_server.h"

namespace weir::app {

/// Lets another process take over from this one, at admin.take_over_socket.
///
/// Thread-safety: the loop's thread. Lifetime: end(), and then the loop runs until !active().
class Successors {
 public:
  struct Setup {
    io::Loop& loop;
    gateway::Gateway& gateway;
    std::function<void(const std::string&)> say;
    std::function<void()> released;  // another process serves now: drain
  };
  explicit Successors(Setup setup) : setup_(std::move(setup)) {}

  /// With the socket of the process before this one, or a new one at `path`. False, with the reason
  /// printed, if that cannot be made.
  [[nodiscard]] bool serve(const std::string& path, io::Fd listening);
  /// Nobody can take over any more.
  void end();
  [[nodiscard]] bool active() const noexcept { return active_; }

 private:
  void on_begun(int pid);
  void on_failed(const std::string& why);
  void on_ended() { active_ = false; }
  void share_all(bool shared);

  Setup setup_;
  std::unique_ptr<gateway::TakeOverServer> server_;
  bool active_ = false;
  bool ending_ = false;
};

}  // namespace weir::app
