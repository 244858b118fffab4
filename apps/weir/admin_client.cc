#include "admin_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <poll.h>
#include <sys/socket.h>

#include "weir/base/errno_text.h"
#include "weir/experimental/io/resolve.h"
#include "weir/experimental/io/socket.h"

namespace weir::app {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::size_t kHeadMax = std::size_t{64} * 1024;
constexpr std::size_t kBodyMax = std::size_t{256} * 1024 * 1024;

/// False: neither that event nor an end within kPatienceMs.
bool await(int fd, short event) {
  pollfd one{.fd = fd, .events = event, .revents = 0};
  int got = 0;
  do {
    got = ::poll(&one, 1, kPatienceMs);
  } while (got < 0 && errno == EINTR);
  return got > 0;
}

std::string last_error() {
  return errno_text(static_cast<std::errc>(errno));
}

/// Empty: all of it is sent.
std::string send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    if (!await(fd, POLLOUT)) return "it does not read";
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (put <= 0) return last_error();
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

enum class Got : std::uint8_t { kSome, kEnd, kFailed };

/// Appends what has arrived.
Got receive(int fd, std::string& input) {
  std::array<char, 16 * 1024> block;
  while (true) {
    const ssize_t got = ::recv(fd, block.data(), block.size(), 0);
    if (got > 0) {
      input.append(block.data(), static_cast<std::size_t>(got));
      return Got::kSome;
    }
    if (got == 0) return Got::kEnd;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Got::kFailed;
    if (!await(fd, POLLIN)) return Got::kFailed;
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string AdminAnswer::field(std::string_view name) const {
  std::string_view rest = head;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(line.size() + 2, rest.size()));
    const std::size_t colon = line.find(':');
    if (colon != name.size()) continue;
    const bool same = std::equal(name.begin(), name.end(), line.begin(), [](char want, char have) {
      return want == (have >= 'A' && have <= 'Z' ? static_cast<char>(have - 'A' + 'a') : have);
    });
    if (!same) continue;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    return std::string(value);
  }
  return {};
}

void AdminStream::pass_lines(const std::function<void(std::string_view line)>& on_line) {
  std::size_t from = 0;
  for (std::size_t end = 0; (end = input_.find('\n', from)) != std::string::npos; from = end + 1) {
    std::string_view line(input_.data() + from, end - from);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    on_line(line);
  }
  input_.erase(0, from);
}

bool AdminStream::read(const std::function<void(std::string_view line)>& on_line) {
  if (input_.find('\n') != std::string::npos) {
    pass_lines(on_line);
    return true;
  }
  if (receive(fd_.get(), input_) != Got::kSome) return false;
  pass_lines(on_line);
  return input_.size() <= kLineMax;
}

Result<AdminAnswer, std::string> AdminStream::rest(std::size_t bytes_max) && {
  std::size_t length = std::string::npos;
  const std::string announced = head_.field("content-length");
  if (!announced.empty()) {
    std::from_chars(announced.data(), announced.data() + announced.size(), length);
  }
  Got got = Got::kSome;
  while (input_.size() < length && got == Got::kSome) {
    if (input_.size() > bytes_max) return unexpected(std::string("the answer is too long"));
    got = receive(fd_.get(), input_);
  }
  const bool whole = length == std::string::npos ? got == Got::kEnd : input_.size() >= length;
  if (!whole) return unexpected(std::string("the connection was closed before the answer ended"));
  head_.body = std::move(input_);
  return std::move(head_);
}

Result<AdminClient, std::string> AdminClient::at(std::string_view text) {
  std::string_view place = text;
  constexpr std::string_view kScheme = "http://";
  if (place.starts_with(kScheme)) {
    place.remove_prefix(kScheme.size());
    while (!place.empty() && place.back() == '/') place.remove_suffix(1);
  }
  const std::string full =
      is_number(place) ? "127.0.0.1:" + std::string(place) : std::string(place);
  const auto address = parse_net_address(full);
  if (!address || !address->can_connect()) {
    return unexpected(std::string(text) +
                      " is not an address of an admin endpoint: wanted is HOST:PORT, "
                      "http://HOST:PORT, PORT or unix:/path");
  }
  return AdminClient(full, *address);
}

Result<AdminAnswer, std::string> AdminClient::get(std::string_view path) const {
  return whole({.method = "GET", .path = path, .fields = {}, .body = {}});
}

Result<AdminAnswer, std::string> AdminClient::post(std::string_view path,
                                                   std::string_view body) const {
  const std::string fields =
      "content-type: application/json\r\ncontent-length: " + std::to_string(body.size()) + "\r\n";
  return whole({.method = "POST", .path = path, .fields = fields, .body = body});
}

Result<AdminStream, std::string> AdminClient::open(std::string_view path,
                                                   std::string_view fields) const {
  return ask({.method = "GET", .path = path, .fields = fields, .body = {}});
}

Result<io::Fd, std::string> AdminClient::connect() const {
  const auto names = io::resolve(address_);
  if (!names) return unexpected(name_ + ": " + std::string(names.error()));
  std::string why;
  for (const io::SocketName& one : *names) {
    auto fd = io::connect_to(one, {});
    if (!fd) {
      why = name_of(fd.error());
      continue;
    }
    if (!await(fd->get(), POLLOUT)) {
      why = "no answer";
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0) return std::move(*fd);
    why = errno_text(static_cast<std::errc>(error));
  }
  return unexpected("no gateway answers at " + name_ + ": " + why);
}

/// As HTTP/1.0, so that the end of the connection ends a body whose length is not known.
Result<AdminStream, std::string> AdminClient::ask(const Question& question) const {
  auto fd = connect();
  if (!fd) return unexpected(fd.error());
  const bool local = address_.kind == NetAddressKind::kUnix;
  std::string text = std::string(question.method) + " " + std::string(question.path) +
                     " HTTP/1.0\r\nhost: " + (local ? "localhost" : name_) + "\r\n";
  if (!token_.empty()) text += "authorization: Bearer " + token_ + "\r\n";
  text += std::string(question.fields) + "\r\n" + std::string(question.body);
  if (const std::string why = send_all(fd->get(), text); !why.empty()) {
    return unexpected(name_ + ": " + why);
  }
  AdminAnswer answer;
  std::size_t end = std::string::npos;
  while ((end = answer.head.find("\r\n\r\n")) == std::string::npos) {
    if (answer.head.size() > kHeadMax || receive(fd->get(), answer.head) != Got::kSome) {
      return unexpected(name_ + " does not answer as an admin endpoint does");
    }
  }
  answer.body = answer.head.substr(end + 4);
  answer.head.resize(end + 2);
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  const std::string_view status = std::string_view(answer.head).substr(0, kStatusAt + 3);
  if (status.starts_with("HTTP/") && status.size() == kStatusAt + 3) {
    std::from_chars(status.data() + kStatusAt, status.data() + status.size(), answer.status);
  }
  if (answer.status == 0) return unexpected(name_ + " does not speak HTTP");
  return AdminStream(std::move(*fd), std::move(answer));
}

Result<AdminAnswer, std::string> AdminClient::whole(const Question& question) const {
  auto stream = ask(question);
  if (!stream) return unexpected(stream.error());
  return std::move(*stream).rest(kBodyMax);
}

}  // namespace weir::app
