#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weir/base/result.h"
#include "weir/experimental/io/dns_config.h"
#include "weir/experimental/io/loop.h"

#include "io/dns_answer.h"

namespace weir::inline v0::io {

class DnsResolver;

using DnsResult = Result<DnsRecords, DnsError>;

/// The result of a lookup of addresses, by family: one may fail while the other succeeds, and a
/// failure says nothing about the addresses of its family.
struct DnsAddresses {
  DnsResult v4 = unexpected(DnsError::kTimeout);
  DnsResult v6 = unexpected(DnsError::kTimeout);
};

/// One lookup, embedded in its owner.
///
/// Promises: calls back once, later than the call that started it, unless it is cancelled. The
/// callback may start the next lookup in the same object, or destroy it.
/// Thread-safety: its resolver's loop. Lifetime: cancels itself when it is destroyed.
class DnsLookup {
 public:
  DnsLookup() = default;
  DnsLookup(const DnsLookup&) = delete;
  DnsLookup& operator=(const DnsLookup&) = delete;
  ~DnsLookup() { cancel(); }

  [[nodiscard]] bool active() const noexcept { return state_ != nullptr; }
  void cancel() noexcept;

  /// The lookup while it is in progress, for DnsResolver only.
  struct State;

 private:
  friend class DnsResolver;
  std::shared_ptr<State> state_;
};

/// Resolves host names on a loop without blocking it, with c-ares.
///
/// A name is looked up in /etc/hosts first (`localhost` always has its loopback addresses), then
/// in DNS, with the search domains of /etc/resolv.conf. The search ends at the first name that has
/// records, and at a server failure or timeout, since the name there might have had some. A
/// truncated answer is asked again by TCP. After four timeouts in a row all sockets are opened anew
/// and /etc/resolv.conf is read again.
///
/// Addresses that this machine has no route to are left out while others remain: a name of both
/// families is common, and a machine without IPv6 too.
///
/// Promises: at most config.records_max records per answer and type, always the same ones.
/// Thread-safety: the loop's thread, or before it runs. Cost: not for requests: allocates, and
/// reads /etc/hosts for each lookup. A lookup holds at most two answers of 64 KB while they arrive.
/// Lifetime: must be destroyed on the loop's thread or when the loop does not run, before the loop;
/// lookups in progress are cancelled.
class DnsResolver {
 public:
  DnsResolver(Loop& loop, DnsConfig config);
  DnsResolver(const DnsResolver&) = delete;
  DnsResolver& operator=(const DnsResolver&) = delete;
  ~DnsResolver();

  /// A and AAAA records of `host`, asked for at the same time.
  void find_addresses(DnsLookup& lookup, const std::string& host,
                      std::function<void(DnsAddresses)> done);
  /// SRV records of a name such as "_http._tcp.api.example.org".
  void find_services(DnsLookup& lookup, const std::string& name,
                     std::function<void(DnsResult)> done);

  [[nodiscard]] const DnsConfig& config() const noexcept;
  [[nodiscard]] Loop& loop() const noexcept;
  /// How often the sockets were opened anew after timeouts.
  [[nodiscard]] std::uint64_t restarts() const noexcept;

 private:
  struct Impl;
  friend class DnsLookup;
  std::shared_ptr<Impl> impl_;
};

}  // namespace weir::inline v0::io
