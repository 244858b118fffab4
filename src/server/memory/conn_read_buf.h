#pragma once

#include <cstddef>
#include <span>

#include "weir/base/assert.h"

namespace weir::inline v0::inline server {

/// One contiguous part of a read buffer: committed bytes [consumed, len) of a fixed span.
class ReadSpan {
 public:
  void attach(std::span<std::byte> memory) noexcept {
    memory_ = memory;
    len_ = 0;
    consumed_ = 0;
  }

  /// Where the next bytes go; an empty span with a null pointer if there is no room.
  [[nodiscard]] std::span<std::byte> space() const noexcept {
    if (len_ == memory_.size()) return {};
    return memory_.subspan(len_);
  }
  void commit(std::size_t bytes) {
    WEIR_ASSERT(bytes <= memory_.size() - len_);
    len_ += bytes;
  }
  [[nodiscard]] std::span<const std::byte> data() const noexcept {
    return memory_.subspan(consumed_, len_ - consumed_);
  }
  void consume(std::size_t bytes) {
    WEIR_ASSERT(bytes <= len_ - consumed_);
    consumed_ += bytes;
    if (consumed_ == len_) consumed_ = len_ = 0;  // empty: the whole span is free, nothing moves
  }
  /// Moves what is left to the start; returns how many bytes were moved.
  std::size_t compact() noexcept;

  [[nodiscard]] std::size_t len() const noexcept { return len_; }
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return memory_.size(); }
  [[nodiscard]] bool empty() const noexcept { return len_ == consumed_; }

 private:
  std::span<std::byte> memory_;
  std::size_t len_ = 0;
  std::size_t consumed_ = 0;
};

/// The bytes that a connection has received and not processed: an encrypted part, filled from the
/// socket and drained by TLS, and a decrypted part, filled by TLS (or, in cleartext, by the socket)
/// and parsed in place. It owns no memory: a region is leased while it contains bytes.
///
/// Promises: bytes are returned in order. A full part returns no room (null), which is
/// back-pressure and not an error. Views are valid until compact() and detach().
/// Thread-safety: none. Cost: O(1), except compact(), which moves the remaining bytes.
class ConnReadBuf {
 public:
  void attach(std::span<std::byte> encrypted, std::span<std::byte> decrypted) noexcept {
    encrypted_.attach(encrypted);
    decrypted_.attach(decrypted);
    attached_ = true;
  }
  /// Releases the region, which must be empty.
  void detach() {
    WEIR_ASSERT(empty());
    discard();
  }
  /// Releases the region and drops its content.
  void discard() noexcept {
    attach({}, {});
    attached_ = false;
  }
  [[nodiscard]] bool attached() const noexcept { return attached_; }
  [[nodiscard]] bool empty() const noexcept { return encrypted_.empty() && decrypted_.empty(); }

  [[nodiscard]] std::span<std::byte> encrypted_ptr() const noexcept { return encrypted_.space(); }
  void commit_encrypted(std::size_t bytes) { encrypted_.commit(bytes); }
  [[nodiscard]] std::span<const std::byte> encrypted() const noexcept { return encrypted_.data(); }
  void consume_encrypted(std::size_t bytes) { encrypted_.consume(bytes); }

  [[nodiscard]] std::span<std::byte> decrypted_ptr() const noexcept { return decrypted_.space(); }
  void commit_decrypted(std::size_t bytes) { decrypted_.commit(bytes); }
  [[nodiscard]] std::span<const std::byte> decrypted() const noexcept { return decrypted_.data(); }
  void consume_decrypted(std::size_t bytes) { decrypted_.consume(bytes); }

  /// Moves unconsumed bytes of both parts to their starts; returns how many were moved.
  std::size_t compact() noexcept { return encrypted_.compact() + decrypted_.compact(); }

  [[nodiscard]] const ReadSpan& encrypted_part() const noexcept { return encrypted_; }
  [[nodiscard]] const ReadSpan& decrypted_part() const noexcept { return decrypted_; }

 private:
  ReadSpan encrypted_;
  ReadSpan decrypted_;
  bool attached_ = false;
};

}  // namespace weir::inline v0::inline server
