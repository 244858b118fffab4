#pragma once

#include <cstdint>
#include <memory>

#include "weir/base/siphash.h"
#include "weir/experimental/io/address.h"

namespace weir::inline v0::server {

/// How many connections each source has open: an IPv4 address, or an IPv6 /64, since whoever has
/// one address of it has them all. Unix sockets have no source and are not counted.
///
/// Promises: as many sources as `connections` can be told apart, so it is never full; memory is
/// taken at construction. Where an entry lies depends on the secret, so that nobody can choose
/// addresses that collide.
/// Thread-safety: none, the owner serialises. Cost: O(1), a probe or two in a table half empty.
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

  /// False, and nothing counted, when the source has as many as it may.
  [[nodiscard]] bool enter(const io::Address& peer) noexcept;
  void leave(const io::Address& peer) noexcept;
  [[nodiscard]] std::uint32_t count_of(const io::Address& peer) const noexcept;
  [[nodiscard]] std::uint32_t sources() const noexcept { return used_; }
  /// Places in the table for so many connections.
  [[nodiscard]] static std::uint32_t places_for(std::uint32_t connections) noexcept;

 private:
  [[nodiscard]] std::uint32_t home(const Entry& entry) const noexcept;
  /// Where the source is, or the free place where it would be.
  [[nodiscard]] std::uint32_t find(const Entry& wanted) const noexcept;
  void close_gap(std::uint32_t hole) noexcept;

  std::uint32_t per_source_max_;
  std::uint32_t mask_;
  std::uint32_t used_ = 0;
  SipKey secret_;
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace weir::inline v0::server
