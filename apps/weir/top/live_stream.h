#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weir/base/net_address.h"
#include "weir/experimental/io/fd.h"

#include "sse_parser.h"

namespace weir::app::top {

/// The stream of a gateway, read without blocking: poll fd() for events() and call on_ready().
///
/// Only a host name blocks, for as long as the system's resolver does. Thread-safety: none.
class LiveStream {
 public:
  LiveStream(NetAddress address, std::string host)
      : address_(std::move(address)), host_(std::move(host)) {}

  /// Ends what was, and asks for `path`. Each stream begins with the whole history, so nothing of
  /// an earlier one is continued.
  void open(const std::string& path);
  /// Ends it; `trouble` says why.
  void end(std::string trouble);

  /// Whether something can still come; if not, trouble() says why.
  [[nodiscard]] bool is_open() const noexcept { return step_ != Step::kClosed; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] short events() const noexcept;  // for poll()
  void on_ready(const std::function<void(SseEvent)>& on_event);

  /// Why it ended: "connection refused", or what the gateway answered.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// Of the answer; 0 without one.
  [[nodiscard]] int status() const noexcept { return status_; }
  /// Seconds that the gateway asked to wait; 0: it did not.
  [[nodiscard]] int retry_after_s() const noexcept { return retry_after_s_; }

 private:
  enum class Step : std::uint8_t { kConnecting, kSending, kHead, kBody, kRefusal, kClosed };

  void on_connected();
  void send_more();
  void take(std::string_view bytes, const std::function<void(SseEvent)>& on_event);
  void take_head(const std::function<void(SseEvent)>& on_event);
  void end_of_stream();

  NetAddress address_;
  std::string host_;
  io::Fd fd_;
  Step step_ = Step::kClosed;
  std::string output_;  // not sent yet
  std::string input_;   // the head, or the text of a refusal
  SseParser parser_;
  std::string trouble_;
  int status_ = 0;
  int retry_after_s_ = 0;
};

}  // namespace weir::app::top
