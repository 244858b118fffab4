#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/base/assert.h"
#include "weir/experimental/io/fd.h"

#include "io/dns_answer.h"

namespace weir::inline v0::io {

/// Writes DNS messages for tests.
namespace dns_bytes {

inline std::string u16(std::size_t value) {
  return {static_cast<char>(value >> 8U & 0xFFU), static_cast<char>(value & 0xFFU)};
}
inline std::string u32(std::uint32_t value) {
  return u16(value >> 16U) + u16(value & 0xFFFFU);
}
inline std::string name(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view label = text.substr(0, text.find('.'));
    out += static_cast<char>(label.size());
    out += label;
    text.remove_prefix(std::min(text.size(), label.size() + 1));
  }
  return out + '\0';
}
inline std::string record(const std::string& owner, std::uint16_t type, std::uint32_t ttl,
                          const std::string& data) {
  return owner + u16(type) + u16(1) + u32(ttl) + u16(data.size()) + data;
}
inline const std::string kOwner = {'\xC0', '\x0C'};  // the name in the question

inline std::string a(const char* address, std::uint32_t ttl = 30,
                     const std::string& owner = kOwner) {
  std::string data(4, '\0');
  WEIR_ASSERT(::inet_pton(AF_INET, address, data.data()) == 1);
  return record(owner, 1, ttl, data);
}
inline std::string aaaa(const char* address, std::uint32_t ttl = 30,
                        const std::string& owner = kOwner) {
  std::string data(16, '\0');
  WEIR_ASSERT(::inet_pton(AF_INET6, address, data.data()) == 1);
  return record(owner, 28, ttl, data);
}
inline std::string cname(std::string_view target, std::uint32_t ttl = 30,
                         const std::string& owner = kOwner) {
  return record(owner, 5, ttl, name(target));
}
inline std::string srv(const DnsService& service, std::uint32_t ttl = 30) {
  return record(
      kOwner, 33, ttl,
      u16(service.priority) + u16(service.weight) + u16(service.port) + name(service.host));
}

/// A response to `question` (its bytes: name, type, class).
struct Message {
  std::string id = std::string(2, '\0');
  std::string question;
  std::uint16_t flags = 0x8180;
  std::vector<std::string> records;
};
inline std::string message(const Message& parts) {
  std::string out = parts.id + u16(parts.flags) + u16(1) + u16(parts.records.size()) + u16(0) +
                    u16(0) + parts.question;
  for (const std::string& one : parts.records) out += one;
  return out;
}

}  // namespace dns_bytes

/// A DNS server for tests: UDP and TCP on one loopback port, in a thread of its own. Answers that
/// do not fit into 512 bytes are truncated by UDP.
///
/// Thread-safety: any thread.
class TestDnsServer {
 public:
  enum class Mode : std::uint8_t { kRecords, kNotFound, kServFail, kSilent, kGarbage };
  struct Answer {
    Mode mode = Mode::kRecords;
    std::vector<std::string> records;  // of dns_bytes; none: NOERROR without records
  };

  TestDnsServer() {
    for (int tries = 0; !bind_both(); ++tries) WEIR_ASSERT(tries < 100);
    WEIR_ASSERT(::pipe(stop_.data()) == 0);
    thread_ = std::thread([this] { run(); });
  }
  ~TestDnsServer() {
    WEIR_ASSERT(::write(stop_[1], "x", 1) == 1);
    thread_.join();
    ::close(stop_[0]);
    ::close(stop_[1]);
  }
  TestDnsServer(const TestDnsServer&) = delete;
  TestDnsServer& operator=(const TestDnsServer&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// What is answered from now on. A name of which nothing is set does not exist; of other types, a
  /// name that exists has no records.
  void set(const std::string& name, DnsType type, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[name][static_cast<std::uint16_t>(type)] = std::move(answer);
  }
  [[nodiscard]] std::size_t queries(const std::string& name, DnsType type) {
    const std::lock_guard lock(mutex_);
    return queries_[{name, static_cast<std::uint16_t>(type)}];
  }
  [[nodiscard]] std::size_t tcp_queries() {
    const std::lock_guard lock(mutex_);
    return tcp_queries_;
  }

 private:
  bool bind_both() {
    udp_ = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    tcp_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&at);
    socklen_t size = sizeof at;
    if (::bind(udp_.get(), any, size) != 0) return false;
    if (::getsockname(udp_.get(), any, &size) != 0) return false;
    port_ = ntohs(at.sin_port);
    return ::bind(tcp_.get(), any, size) == 0 && ::listen(tcp_.get(), 16) == 0;
  }

  void run() {
    while (true) {
      std::array<pollfd, 3> ready = {pollfd{stop_[0], POLLIN, 0}, pollfd{udp_.get(), POLLIN, 0},
                                     pollfd{tcp_.get(), POLLIN, 0}};
      ::poll(ready.data(), ready.size(), -1);
      if (ready[0].revents != 0) return;
      if (ready[1].revents != 0) serve_udp();
      if (ready[2].revents != 0) serve_tcp();
    }
  }

  void serve_udp() {
    std::array<char, 1500> buffer{};
    sockaddr_in from{};
    socklen_t size = sizeof from;
    auto* any = reinterpret_cast<sockaddr*>(&from);
    const auto got = ::recvfrom(udp_.get(), buffer.data(), buffer.size(), 0, any, &size);
    if (got < 12) return;
    const std::string out = answer({buffer.data(), static_cast<std::size_t>(got)}, false);
    if (!out.empty()) ::sendto(udp_.get(), out.data(), out.size(), 0, any, size);
  }

  void serve_tcp() {
    const Fd connection(::accept(tcp_.get(), nullptr, nullptr));
    std::array<char, 1500> buffer{};
    const auto got = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
    if (got < 14) return;
    const std::string query(buffer.data() + 2, static_cast<std::size_t>(got) - 2);
    const std::string body = answer(query, true);
    const std::string out = dns_bytes::u16(body.size()) + body;
    ::send(connection.get(), out.data(), out.size(), MSG_NOSIGNAL);
    ::shutdown(connection.get(), SHUT_WR);
    while (::recv(connection.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
  }

  static std::string text_of(std::string_view wire) {
    std::string out;
    while (!wire.empty() && wire[0] != 0) {
      const auto size = static_cast<std::size_t>(wire[0]);
      if (!out.empty()) out += '.';
      out += wire.substr(1, size);
      wire.remove_prefix(size + 1);
    }
    return out;
  }

  std::string answer(const std::string& query, bool by_tcp) {
    const std::size_t end = query.find('\0', 12);
    const std::string question = query.substr(12, end - 12 + 5);
    const std::string name = text_of(question);
    const auto type = static_cast<std::uint16_t>(static_cast<unsigned char>(query[end + 2]));
    const std::lock_guard lock(mutex_);
    ++queries_[{name, type}];
    if (by_tcp) ++tcp_queries_;
    dns_bytes::Message out{.id = query.substr(0, 2), .question = question, .records = {}};
    const auto known = answers_.find(name);
    Answer wanted{.mode = known == answers_.end() ? Mode::kNotFound : Mode::kRecords,
                  .records = {}};
    if (known != answers_.end() && known->second.contains(type)) wanted = known->second[type];
    if (wanted.mode == Mode::kSilent) return {};
    if (wanted.mode == Mode::kNotFound) out.flags |= 3;
    if (wanted.mode == Mode::kServFail) out.flags |= 2;
    out.records = wanted.records;
    if (wanted.mode == Mode::kGarbage) out.records = {"\x07not a record"};
    std::string bytes = dns_bytes::message(out);
    if (by_tcp || bytes.size() <= 512) return bytes;
    out.flags |= 0x0200;
    out.records.resize(2);
    return dns_bytes::message(out);
  }

  Fd udp_;
  Fd tcp_;
  std::uint16_t port_ = 0;
  std::array<int, 2> stop_{-1, -1};
  std::mutex mutex_;
  std::map<std::string, std::map<std::uint16_t, Answer>> answers_;
  std::map<std::pair<std::string, std::uint16_t>, std::size_t> queries_;
  std::size_t tcp_queries_ = 0;
  std::thread thread_;
};

}  // namespace weir::inline v0::io
