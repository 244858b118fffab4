#include "live_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "weir/base/errno_text.h"
#include "weir/experimental/io/resolve.h"
#include "weir/experimental/io/socket.h"

#include "text.h"

namespace weir::app::top {
namespace {

constexpr std::size_t kStreamHeadMax = std::size_t{64} * 1024;
constexpr std::size_t kRefusalMax = std::size_t{4} * 1024;

std::string text_of_error(int number) {
  return errno_text(static_cast<std::errc>(number));
}

/// The number behind `name: ` at the start of a line of `head`; 0 without one.
int field_number(std::string_view head, std::string_view name) {
  const auto same = [](char want, char have) {
    return want == (have >= 'A' && have <= 'Z' ? static_cast<char>(have - 'A' + 'a') : have);
  };
  int value = 0;
  for (std::size_t at = 0; (at = head.find("\r\n", at)) != std::string_view::npos;) {
    at += 2;
    const std::string_view line = head.substr(at, head.find("\r\n", at) - at);
    if (line.size() <= name.size() || !std::equal(name.begin(), name.end(), line.begin(), same)) {
      continue;
    }
    const std::size_t from = line.find_first_of("0123456789", name.size());
    if (from != std::string_view::npos) {
      std::from_chars(line.data() + from, line.data() + line.size(), value);
    }
  }
  return value;
}

}  // namespace

void LiveStream::open(const std::string& path) {
  end({});
  status_ = retry_after_s_ = 0;
  parser_ = SseParser();
  // As HTTP/1.0: the body is not in chunks and ends with the connection.
  output_ = "GET " + path + " HTTP/1.0\r\nhost: " + host_ + "\r\naccept: text/event-stream\r\n\r\n";
  const auto names = io::resolve(address_);
  if (!names) return end(std::string(names.error()));
  std::string why = "no address";
  for (const io::SocketName& name : *names) {
    auto fd = io::connect_to(name, {});
    if (!fd) {
      why = "connection " + std::string(name_of(fd.error()));
      continue;
    }
    fd_ = std::move(*fd);
    step_ = Step::kConnecting;
    return;
  }
  end(why);
}

short LiveStream::events() const noexcept {
  return step_ == Step::kConnecting || step_ == Step::kSending ? POLLOUT : POLLIN;
}

void LiveStream::end(std::string trouble) {
  fd_.reset();
  input_.clear();
  step_ = Step::kClosed;
  trouble_ = std::move(trouble);
}

void LiveStream::on_connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return end(text_of_error(error));
  step_ = Step::kSending;
}

void LiveStream::send_more() {
  const ssize_t put = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (put < 0) return end(text_of_error(errno));
  output_.erase(0, static_cast<std::size_t>(put));
  if (output_.empty()) step_ = Step::kHead;
}

void LiveStream::on_ready(const std::function<void(SseEvent)>& on_event) {
  if (step_ == Step::kConnecting) on_connected();
  if (step_ == Step::kSending) send_more();
  std::array<char, 16 * 1024> block;
  // A bounded turn: keys are read between two.
  for (int turn = 0; turn < 64 && (step_ >= Step::kHead && step_ < Step::kClosed); ++turn) {
    const ssize_t got = ::recv(fd_.get(), block.data(), block.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return end(text_of_error(errno));
    if (got == 0) return end_of_stream();
    take({block.data(), static_cast<std::size_t>(got)}, on_event);
  }
}

void LiveStream::take(std::string_view bytes, const std::function<void(SseEvent)>& on_event) {
  if (step_ == Step::kBody) {
    if (!parser_.feed(bytes, on_event)) end("a message is longer than any of a gateway");
    return;
  }
  input_ += bytes;
  if (step_ == Step::kHead) return take_head(on_event);
  if (input_.size() > kRefusalMax) end_of_stream();
}

void LiveStream::take_head(const std::function<void(SseEvent)>& on_event) {
  const std::size_t end_at = input_.find("\r\n\r\n");
  if (end_at == std::string::npos) {
    if (input_.size() > kStreamHeadMax) end("it does not answer as a gateway does");
    return;
  }
  const std::string head = input_.substr(0, end_at + 2);
  const std::string rest = input_.substr(end_at + 4);
  input_.clear();
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  if (head.starts_with("HTTP/1.") && head.size() > kStatusAt + 3) {
    std::from_chars(head.data() + kStatusAt, head.data() + kStatusAt + 3, status_);
  }
  if (status_ == 0) return end("it does not speak HTTP");
  retry_after_s_ = std::clamp(field_number(head, "retry-after:"), 0, 3600);
  step_ = status_ == 200 ? Step::kBody : Step::kRefusal;
  if (!rest.empty()) take(rest, on_event);
}

void LiveStream::end_of_stream() {
  if (step_ != Step::kRefusal) return end("the gateway ended the stream");
  const std::string said = clean(input_.substr(0, input_.find_first_of("\r\n")), 200);
  end("it answers " + std::to_string(status_) + (said.empty() ? "" : ": " + said));
}

}  // namespace weir::app::top
