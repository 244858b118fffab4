#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "io/shared_blocks.h"

namespace weir::inline v0::upstream {

/// The memory of all calls of a process, in pools that all loops share.
///
/// Thread-safety: as io::SharedBlocks. Lifetime: outlives every Dispatcher.
struct UpstreamMemory {
  struct Shape {
    std::uint32_t heads = 0;  // calls whose response has not begun
    std::size_t head_bytes = 0;
    std::uint32_t bodies = 0;  // pieces of request bodies that are unsent, or kept for a retry
    std::size_t body_bytes = 0;
    std::uint32_t buffers = 0;  // pieces of bodies that are received before the call starts
    std::size_t buffer_bytes = 0;
    std::uint32_t regions = 0;  // responses that are being read
    std::size_t region_bytes = 0;
    std::uint32_t sessions = 0;  // HTTP/2 connections
    std::size_t session_bytes = 0;
    std::uint32_t loops = 1;
    std::uint32_t reserved = 0;  // of heads, bodies, buffers and regions, for critical requests
  };

  explicit UpstreamMemory(const Shape& shape)
      : heads(blocks(shape, shape.heads, shape.head_bytes, 4)),
        bodies(blocks(shape, shape.bodies, shape.body_bytes, 0)),
        buffers({.count = shape.buffers,
                 .bytes_each = shape.buffer_bytes,
                 .reserved = std::min(shape.reserved, shape.buffers / 8),
                 .loops = shape.loops,
                 .cached_max = 0}),
        regions(blocks(shape, shape.regions, shape.region_bytes, 0)),
        sessions({.count = shape.sessions,
                  .bytes_each = shape.session_bytes,
                  .reserved = 0,
                  .loops = shape.loops,
                  .cached_max = 0}) {}

  io::SharedBlocks heads;
  io::SharedBlocks bodies;
  io::SharedBlocks buffers;
  io::SharedBlocks regions;
  io::SharedBlocks sessions;

 private:
  static io::SharedBlocks::Shape blocks(const Shape& shape, std::uint32_t count, std::size_t bytes,
                                        std::uint32_t cached) {
    return {.count = count,
            .bytes_each = bytes,
            .reserved = shape.reserved,
            .loops = shape.loops,
            .cached_max = cached};
  }
};

}  // namespace weir::inline v0::upstream
