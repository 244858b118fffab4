#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/experimental/gateway/passed_sockets.h"
#include "weir/experimental/io/error.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::gateway {

/// What a running process gives to the one that takes over.
struct TakeOverOffer {
  std::vector<PassedSocket> sockets;
  std::string ticket_keys{};  // of TLS sessions; empty: there is no TLS
};

/// The running process's side of a take-over: gives its listening sockets to a new process
/// (successor) that asks at a Unix socket, and learns when that one is ready to serve.
///
/// Promises: nothing changes here until the successor has said that it is ready and has been told
/// that it may begin. If it ends, is too slow or sends nonsense before, `failed` is called and this
/// process goes on. Only processes of the same user and of root are answered. At most four are
/// connected at a time, and one of them takes over.
/// Thread-safety: the loop's thread. Lifetime: stop(), and `done` called, before destruction.
class TakeOverServer {
 public:
  struct Setup {
    std::function<TakeOverOffer()> offer;
    /// The successor with this process id may hold the sockets until `failed` or `released`.
    std::function<void(int pid)> begun{};
    std::function<void(const std::string& why)> failed{};
    /// The successor begins to accept on the sockets that it has taken: drain. Called once.
    std::function<void(const std::vector<bool>& taken)> released;
    /// Lines for the operator, at most one in ten seconds for strangers.
    std::function<void(const std::string&)> say{};
    Duration hello_within = std::chrono::seconds(5);
    Duration ready_within = std::chrono::seconds(60);
  };

  TakeOverServer(io::Loop& loop, Setup setup);
  TakeOverServer(const TakeOverServer&) = delete;
  TakeOverServer& operator=(const TakeOverServer&) = delete;
  ~TakeOverServer();

  /// `listening` is from io::listen_for_messages(), or from a predecessor. It is given on, too.
  [[nodiscard]] Result<void, io::IoError> start(io::Fd listening);
  /// Answers nobody any more; a successor that has the sockets goes on alone.
  void stop(io::Callback<> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::gateway
