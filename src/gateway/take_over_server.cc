#include "gateway/take_over_server.h"

#include <algorithm>
#include <utility>

#include "weir/experimental/io/listener.h"
#include "weir/experimental/io/socket.h"
#include "weir/experimental/io/timer.h"

#include "io/message_socket.h"
#include "take_over_message.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::size_t kVisitorsMax = 4;
constexpr Duration kBetweenLines = std::chrono::seconds(10);
constexpr std::size_t kRequestBytesMax = 4096;  // a successor sends little

}  // namespace

class TakeOverServer::Impl final : public io::AcceptSink {
 public:
  Impl(io::Loop& loop, Setup setup) : loop_(loop), setup_(std::move(setup)) {}

  Result<void, io::IoError> start(io::Fd listening) {
    Result<void, io::IoError> started = listener_.start(loop_, std::move(listening), {}, *this);
    open_ = started.has_value();
    return started;
  }

  void stop(io::Callback<> done) {
    stopped_ = done;
    stopping_ = true;
    for (const auto& visitor : visitors_) visitor->leave();
    if (std::exchange(open_, false)) {
      listener_.close(io::Callback<>::to<&Impl::on_listener_closed>(*this));
    } else {
      closing_ = false;
      look_if_gone();
    }
  }

  void on_accepted(io::Fd fd, const io::Address&) override {
    const auto peer = io::peer_process(fd.get());
    if (!peer || !io::may_command(*peer)) {
      return say_rarely("a process of user " + std::to_string(peer ? peer->user : 0) +
                        " asked for a take-over and was not answered: only the user of this "
                        "process and root may");
    }
    if (stopping_ || visitors_.size() >= kVisitorsMax) return;
    auto visitor = std::make_unique<Visitor>(*this, peer->pid);
    if (!visitor->open(std::move(fd))) return;
    visitors_.push_back(std::move(visitor));
  }
  void on_accept_failed(io::IoError) override {}

 private:
  /// One connected process.
  class Visitor final : public io::SocketEvents {
   public:
    Visitor(Impl& owner, int pid) : owner_(owner), pid_(pid) {
      timer_.on_fire(io::Timer::Fired::to<&Visitor::on_late>(*this));
    }

    bool open(io::Fd fd) {
      if (!socket_.open(owner_.loop_, std::move(fd), *this)) return false;
      socket_.watch({.read = true, .write = false});
      owner_.loop_.arm(timer_, owner_.setup_.hello_within);
      return true;
    }

    void on_readable() override {
      const auto message =
          io::receive_message(socket_.fd(), {.bytes_max = kRequestBytesMax, .descriptors_max = 0});
      if (!message) {
        if (message.error() == io::IoError::kAgain) return;
        if (message.error() == io::IoError::kInvalid)
          return refuse("a message that is too large, or that holds descriptors");
        return end("it ended before it was ready");
      }
      const auto decoded = decode_take_over(message->bytes);
      if (!decoded) return refuse(fault_text(decoded.error(), message->bytes));
      if (decoded->kind == TakeOverKind::kHello && count_ == 0) return give();
      if (decoded->kind == TakeOverKind::kReady && count_ > 0) return on_ready(decoded->taken);
      refuse("a message that does not belong here");
    }
    void on_writable() override {}
    void on_disconnected() override { end("it ended before it was ready"); }

    void leave() {
      if (!socket_.is_open()) return;
      owner_.loop_.cancel(timer_);
      socket_.close(io::Callback<>::to<&Visitor::on_closed>(*this));
    }

   private:
    static std::string fault_text(TakeOverFault fault, std::string_view bytes) {
      if (fault != TakeOverFault::kVersion) return "a message that is not of a take-over";
      return "this process speaks version " + std::to_string(kTakeOverVersion) +
             " of the take-over, not " + std::to_string(take_over_version(bytes)) +
             ": stop it and start the new one";
    }

    /// Gives all sockets, and the one that this take-over came through.
    void give() {
      if (owner_.successor_ != nullptr || owner_.released_) {
        return refuse("another take-over is in progress");
      }
      TakeOverOffer offer = owner_.setup_.offer();
      offer.sockets.push_back({.fd = owner_.listener_.duplicate(),
                               .role = SocketRole::kTakeOver,
                               .configured = {},
                               .name = {}});
      if (offer.sockets.size() > kTakeOverSocketsMax) {
        return refuse("more than " + std::to_string(kTakeOverSocketsMax - 1) + " sockets listen");
      }
      TakeOverMessage message{.kind = TakeOverKind::kSockets, .ticket_keys = offer.ticket_keys};
      std::vector<int> descriptors;
      for (const PassedSocket& one : offer.sockets) {
        if (!one.fd) return refuse("no descriptor is free: raise the limit (ulimit -n)");
        descriptors.push_back(one.fd.get());
        message.sockets.push_back({.role = one.role.value_or(SocketRole::kListen),
                                   .held = one.held,
                                   .configured = one.configured});
      }
      owner_.successor_ = this;
      count_ = offer.sockets.size();
      if (!io::send_message(socket_.fd(), encode(message), descriptors)) {
        return end("it does not read what it is sent");
      }
      owner_.loop_.arm(timer_, owner_.setup_.ready_within);
      if (owner_.setup_.begun) owner_.setup_.begun(pid_);
    }

    /// The answer decides: if it cannot be sent, the successor is gone and has not begun.
    void on_ready(std::vector<bool> taken) {
      if (taken.size() != count_) return refuse("a message that does not belong here");
      if (!io::send_message(socket_.fd(), encode({.kind = TakeOverKind::kReleased}))) {
        return end("it ended before it was ready");
      }
      taken.pop_back();  // the socket of the take-over itself
      owner_.successor_ = nullptr;
      owner_.released_ = true;
      owner_.listener_.pause();  // the successor serves those who connect now
      leave();
      owner_.setup_.released(taken);
    }

    void on_late(TimePoint) {
      refuse(count_ == 0 ? "nothing was asked in time" : "it was not ready in time");
    }

    void refuse(const std::string& why) {
      static_cast<void>(
          io::send_message(socket_.fd(), encode({.kind = TakeOverKind::kRefused, .reason = why})));
      end(why);
    }

    void end(const std::string& why) {
      leave();
      if (owner_.successor_ != this) return;
      owner_.successor_ = nullptr;
      if (owner_.setup_.failed) {
        owner_.setup_.failed("process " + std::to_string(pid_) + " did not take over: " + why);
      }
    }

    void on_closed() { owner_.on_gone(*this); }  // destroys this

    Impl& owner_;
    const int pid_;
    io::Socket socket_;
    io::Timer timer_;
    std::size_t count_ = 0;  // of the sockets that it was given
  };

  void on_gone(const Visitor& visitor) {
    std::erase_if(visitors_, [&](const auto& one) { return one.get() == &visitor; });
    look_if_gone();
  }

  void on_listener_closed() {
    closing_ = false;
    look_if_gone();
  }

  void look_if_gone() {
    if (stopped_ && !closing_ && visitors_.empty()) std::exchange(stopped_, {})();
  }

  void say_rarely(const std::string& line) {
    const TimePoint now = loop_.now();
    if (!setup_.say || now < next_line_) return;
    next_line_ = now + kBetweenLines;
    setup_.say(line);
  }

  io::Loop& loop_;
  const Setup setup_;
  io::Listener listener_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  Visitor* successor_ = nullptr;  // has the sockets
  io::Callback<> stopped_;
  TimePoint next_line_{};
  bool open_ = false;    // the listener
  bool closing_ = true;  // until the listener is closed
  bool released_ = false;
  bool stopping_ = false;
};

TakeOverServer::TakeOverServer(io::Loop& loop, Setup setup)
    : impl_(std::make_unique<Impl>(loop, std::move(setup))) {}
TakeOverServer::~TakeOverServer() = default;

Result<void, io::IoError> TakeOverServer::start(io::Fd listening) {
  return impl_->start(std::move(listening));
}

void TakeOverServer::stop(io::Callback<> done) {
  impl_->stop(done);
}

}  // namespace weir::inline v0::gateway
