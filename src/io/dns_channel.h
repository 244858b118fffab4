#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weir/experimental/io/dns_config.h"
#include "weir/experimental/io/loop.h"

#include "io/dns_resolver.h"

struct ares_channeldata;

namespace weir::inline v0::io {

/// A c-ares channel on a loop: sends queries, and watches the sockets and the timeouts that c-ares
/// asks for.
///
/// Promises: calls back once per query, possibly from within query(); when it is destroyed or
/// restarted, queries in progress end with kTimeout.
/// Thread-safety: its loop's thread. Lifetime: must be destroyed before its loop.
class DnsChannel {
 public:
  DnsChannel(Loop& loop, const DnsConfig& config);
  DnsChannel(const DnsChannel&) = delete;
  DnsChannel& operator=(const DnsChannel&) = delete;
  ~DnsChannel();

  struct Question {
    std::string name;  // absolute
    DnsType type = DnsType::kA;
  };
  void query(const Question& question, std::function<void(DnsResult)> done);
  [[nodiscard]] std::size_t outstanding() const noexcept { return outstanding_; }
  /// Queries since the last answer that ended without one.
  [[nodiscard]] std::uint32_t timeouts_in_a_row() const noexcept { return timeouts_; }
  /// Opens everything anew and reads /etc/resolv.conf again.
  void restart();

  /// The addresses of /etc/hosts; kNoRecords for a family that has none there.
  [[nodiscard]] DnsAddresses in_hosts(const std::string& name);
  /// The names to ask for, in order: those of the search domains first if the name has fewer dots
  /// than resolv.conf wants (ndots). A name with a final dot is not searched for.
  [[nodiscard]] std::vector<std::string> search(const std::string& name);

 private:
  struct Glue;  // c-ares' and libuv's callbacks
  friend struct Glue;
  struct WatchedSocket;

  void open();
  void close() noexcept;
  void set_timer();
  void on_timer(TimePoint now);

  Loop& loop_;
  const DnsConfig& config_;
  ares_channeldata* channel_ = nullptr;  // nullptr: could not be opened
  std::vector<WatchedSocket*> sockets_;
  Timer timer_{Timer::Fired::to<&DnsChannel::on_timer>(*this)};
  std::size_t outstanding_ = 0;
  std::uint32_t timeouts_ = 0;
};

}  // namespace weir::inline v0::io
