#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/shared_blocks.h"

namespace weir::inline v0::inline server {

/// One write buffer and how much of it is filled and sent. It is stored separately from the memory.
struct WriteBuffer {
  std::byte* data = nullptr;
  WriteBuffer* next = nullptr;
  std::uint32_t begin = 0;  // sent up to here
  std::uint32_t end = 0;    // filled up to here
  std::uint32_t size = 0;

  [[nodiscard]] std::uint32_t pending() const noexcept { return end - begin; }
  [[nodiscard]] std::uint32_t room() const noexcept { return size - end; }
  [[nodiscard]] std::span<char> space() noexcept {
    return {reinterpret_cast<char*>(data) + end, room()};
  }
};

/// The write slab: bounds the unsent output of all connections. If it is empty, a connection is
/// blocked in its loop's queue and resumed in turn.
///
/// Thread-safety, cost: as SharedBlocks.
class WritePool {
 public:
  explicit WritePool(const io::SharedBlocks::Shape& shape)
      : blocks_(shape),
        buffers_(std::make_unique<WriteBuffer[]>(shape.count)),
        size_(static_cast<std::uint32_t>(shape.bytes_each)) {}

  [[nodiscard]] WriteBuffer* acquire(std::uint32_t loop, io::Access access) noexcept {
    return fresh(blocks_.acquire(loop, access));
  }
  /// A buffer that was assigned to this loop for a blocked connection, or nullptr.
  [[nodiscard]] WriteBuffer* take_handed(std::uint32_t loop) noexcept {
    return fresh(blocks_.take_handed(loop));
  }
  void release(std::uint32_t loop, WriteBuffer* buffer) noexcept {
    blocks_.release(loop, buffer->data);
  }
  [[nodiscard]] io::SharedBlocks& blocks() noexcept { return blocks_; }
  [[nodiscard]] const io::SharedBlocks& blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::uint32_t buffer_bytes() const noexcept { return size_; }

 private:
  [[nodiscard]] WriteBuffer* fresh(std::byte* block) noexcept {
    if (block == nullptr) return nullptr;
    WriteBuffer& buffer = buffers_[blocks_.index_of(block)];
    buffer = {.data = block, .next = nullptr, .begin = 0, .end = 0, .size = size_};
    return &buffer;
  }

  io::SharedBlocks blocks_;
  std::unique_ptr<WriteBuffer[]> buffers_;
  std::uint32_t size_;
};

}  // namespace weir::inline v0::inline server
