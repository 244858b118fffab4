#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/net_address.h"
#include "weir/base/result.h"
#include "weir/experimental/io/fd.h"

namespace weir::app {

/// An answer of the admin endpoint.
struct AdminAnswer {
  int status = 0;
  std::string head;  // status line and fields, as they came
  std::string body;

  /// The value of a field; empty if there is none. `name` is in lower case.
  [[nodiscard]] std::string field(std::string_view name) const;
};

/// An answer that goes on: lines, until the other side ends it.
class AdminStream {
 public:
  AdminStream(io::Fd fd, AdminAnswer head)
      : fd_(std::move(fd)), head_(std::move(head)), input_(std::exchange(head_.body, {})) {}

  [[nodiscard]] const AdminAnswer& head() const noexcept { return head_; }
  [[nodiscard]] int status() const noexcept { return head_.status; }
  /// To wait until read() has something to read.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Reads what has arrived, or waits for it, and passes on each whole line without its end. False:
  /// the other side has ended, or a line is longer than kLineMax. Lines that came with the head are
  /// passed on by the first call: make it before waiting for fd().
  [[nodiscard]] bool read(const std::function<void(std::string_view line)>& on_line);

  /// All of it, of an answer that ends. The error is a sentence.
  [[nodiscard]] Result<AdminAnswer, std::string> rest(std::size_t bytes_max) &&;

  static constexpr std::size_t kLineMax = std::size_t{4} * 1024 * 1024;

 private:
  void pass_lines(const std::function<void(std::string_view line)>& on_line);

  io::Fd fd_;
  AdminAnswer head_;
  std::string input_;
};

/// Asks the admin endpoint of a running gateway, over TCP or a Unix socket.
///
/// Blocks, for at most ten seconds without progress; each question has a connection of its own. For
/// commands, not for servers. Errors are sentences for the operator. Thread-safety: none.
class AdminClient {
 public:
  /// "127.0.0.1:9901", "http://host:9901", "9901" (on this machine), "unix:/run/weir/admin.sock".
  [[nodiscard]] static Result<AdminClient, std::string> at(std::string_view text);

  /// Sent with each question from now on.
  void set_token(std::string token) { token_ = std::move(token); }
  /// As it was given, for messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  [[nodiscard]] Result<AdminAnswer, std::string> get(std::string_view path) const;
  /// `body` is JSON.
  [[nodiscard]] Result<AdminAnswer, std::string> post(std::string_view path,
                                                      std::string_view body) const;
  /// A GET whose answer goes on. `fields` are more lines of the head, each with its "\r\n".
  [[nodiscard]] Result<AdminStream, std::string> open(std::string_view path,
                                                      std::string_view fields = {}) const;

 private:
  AdminClient(std::string name, NetAddress address)
      : name_(std::move(name)), address_(std::move(address)) {}
  struct Question {
    std::string_view method;
    std::string_view path;
    std::string_view fields;
    std::string_view body;
  };
  [[nodiscard]] Result<AdminStream, std::string> ask(const Question& question) const;
  [[nodiscard]] Result<AdminAnswer, std::string> whole(const Question& question) const;
  [[nodiscard]] Result<io::Fd, std::string> connect() const;

  std::string name_;
  NetAddress address_;
  std::string token_;
};

}  // namespace weir::app
