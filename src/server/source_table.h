#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "weir/base/siphash.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::inline server {

/// A keyed hash of the source of a connection; zero if it has none.
[[nodiscard]] std::uint64_t source_hash(SipKey secret, const io::Address& peer) noexcept;

/// The number of open connections per source: an IPv4 address or an IPv6 /64, because a site
/// usually has all addresses of a /64. Unix sockets have no source and are not counted.
///
/// Promises: it has room for as many sources as `connections`, so it is never full; memory is
/// allocated at construction. The position of an entry depends on a secret, so a client cannot
/// choose addresses that collide.
/// Thread-safety: none; the owner serialises calls. Cost: O(1): one or two probes, because half of
/// the table is empty.
class SourceTable {
 public:
  struct Shape {
    std::uint32_t connections = 0;  // of all sources together
    std::uint32_t per_source_max = 0;
    SipKey secret;
  };
  struct Entry {
    std::uint64_t source = 0;
    std::uint32_t count = 0;  // 0: free
    bool v6 = false;
  };

  explicit SourceTable(const Shape& shape);

  /// False, and nothing is counted, if the source has reached its cap.
  [[nodiscard]] bool enter(const io::Address& peer) noexcept;
  void leave(const io::Address& peer) noexcept;
  [[nodiscard]] std::uint32_t count_of(const io::Address& peer) const noexcept;
  [[nodiscard]] std::uint32_t sources() const noexcept { return used_; }
  /// The number of table entries for that many connections.
  [[nodiscard]] static std::uint32_t places_for(std::uint32_t connections) noexcept {
    return std::bit_ceil(std::max<std::uint32_t>(connections, 1) * 2);
  }

 private:
  [[nodiscard]] std::uint32_t home(const Entry& entry) const noexcept;
  /// The entry of the source, or the free entry where it would be.
  [[nodiscard]] std::uint32_t find(const Entry& wanted) const noexcept;
  void close_gap(std::uint32_t hole) noexcept;

  std::uint32_t per_source_max_;
  std::uint32_t mask_;
  std::uint32_t used_ = 0;
  SipKey secret_;
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace weir::inline v0::inline server
