#pragma once

// A TakeOverServer on a loop of its own, at a path that ends with the test.

#include <atomic>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/loop_threads.h"

#include "gateway/take_over_server.h"
#include "io/message_socket.h"

namespace weir::inline v0::gateway::testkit {

/// A path for a Unix socket that no other test uses.
inline std::string fresh_socket_path() {
  static std::atomic<int> count{0};
  const std::string folder = testing::TempDir() + "take_over_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  return folder + "/" + std::to_string(++count) + ".sock";
}

/// A running process as its successors see it. What it is told is kept.
class Predecessor {
 public:
  explicit Predecessor(std::function<void(TakeOverServer::Setup&)> change = {}, io::Fd from = {}) {
    threads_.start();
    TakeOverServer::Setup setup;
    setup.offer = [this] { return offer(); };
    setup.begun = [this](int) { ++begun; };
    setup.failed = [this](const std::string& why) {
      const std::scoped_lock lock(mutex_);
      failures_.push_back(why);
    };
    setup.released = [this](const std::vector<bool>& which) {
      const std::scoped_lock lock(mutex_);
      taken_ = which;
      released = true;
    };
    if (change) change(setup);
    threads_.at(0).call([&] {
      server_ = std::make_unique<TakeOverServer>(threads_.at(0), std::move(setup));
      io::Fd fd = from ? std::move(from) : std::move(*io::listen_for_messages(path));
      EXPECT_TRUE(server_->start(std::move(fd)).has_value());
    });
  }
  Predecessor(const Predecessor&) = delete;
  Predecessor& operator=(const Predecessor&) = delete;
  ~Predecessor() {
    stop();
    threads_.stop();
  }

  /// Adds a socket that it gives.
  io::SocketName listen(SocketRole role, const std::string& address) {
    auto fd = io::listen_on(*io::parse_socket_name(address), {});
    EXPECT_TRUE(fd.has_value());
    sockets_.push_back({.fd = std::move(*fd), .role = role, .configured = address, .name = {}});
    return io::bound_name(sockets_.back().fd.get());
  }
  void stop() {
    if (!server_) return;
    std::latch stopped(1);
    threads_.at(0).post([&] {
      server_->stop(io::Callback<>(
          [](void* latch) { static_cast<std::latch*>(latch)->count_down(); }, &stopped));
    });
    stopped.wait();
    threads_.at(0).call([&] { server_.reset(); });
  }
  std::vector<std::string> failures() {
    const std::scoped_lock lock(mutex_);
    return failures_;
  }
  std::vector<bool> taken() {
    const std::scoped_lock lock(mutex_);
    return taken_;
  }

  const std::string path = fresh_socket_path();
  std::atomic<bool> released{false};
  std::atomic<int> begun{0};
  std::string ticket_keys = "keys";

 private:
  TakeOverOffer offer() {
    TakeOverOffer all{.sockets = {}, .ticket_keys = ticket_keys};
    for (const PassedSocket& one : sockets_) {
      all.sockets.push_back({.fd = io::Fd(::dup(one.fd.get())),
                             .role = one.role,
                             .configured = one.configured,
                             .name = {}});
    }
    return all;
  }

  io::LoopThreads threads_{{.count = 1, .pin = false, .name = "test"}};
  std::unique_ptr<TakeOverServer> server_;
  std::vector<PassedSocket> sockets_;
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<bool> taken_;
};

}  // namespace weir::inline v0::gateway::testkit
