#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "http/h2/nghttp2_codec.h"

namespace weir::inline v0::http::h2 {

/// The methods of SessionBase, as far as both sides do the same. `Interface` is Session or
/// ClientSession.
template <class Interface>
class Nghttp2Facade : public Interface, public Nghttp2Codec {
 public:
  [[nodiscard]] ReceiveResult receive(std::span<const std::byte> in, TimePoint now) override {
    return Nghttp2Codec::receive(in, now);
  }
  void yield() noexcept override { Nghttp2Codec::yield(); }
  [[nodiscard]] std::size_t produce(std::span<std::byte> out, TimePoint now) override {
    return Nghttp2Codec::produce(out, now);
  }
  [[nodiscard]] bool has_output() const noexcept override { return Nghttp2Codec::has_output(); }
  [[nodiscard]] std::uint32_t sendable(StreamId id) const noexcept override {
    return Nghttp2Codec::sendable(id);
  }
  [[nodiscard]] std::uint32_t window(StreamId id) const noexcept override {
    return Nghttp2Codec::window(id);
  }
  [[nodiscard]] std::int32_t stream_window(StreamId id) const noexcept override {
    return Nghttp2Codec::stream_window(id);
  }
  [[nodiscard]] bool write_data(StreamId id, const DataFrame& frame, TimePoint now) override {
    return Nghttp2Codec::write_data(id, frame, now);
  }
  [[nodiscard]] SubmitStatus submit_trailers(StreamId id, std::span<const Field> fields) override {
    return Nghttp2Codec::submit_trailers(id, fields);
  }
  void grant(StreamId id, std::uint64_t bytes) override { Nghttp2Codec::grant(id, bytes); }
  void reset(StreamId id, ErrorCode code) override { Nghttp2Codec::reset(id, code); }
  void release(StreamId id) override { Nghttp2Codec::release(id); }
  void shut_down() override { Nghttp2Codec::shut_down(); }
  [[nodiscard]] TimePoint next_expiry() const noexcept override {
    return Nghttp2Codec::next_expiry();
  }
  void expire(TimePoint now) override { Nghttp2Codec::expire(now); }
  [[nodiscard]] SessionEnd ended() const noexcept override { return Nghttp2Codec::ended(); }
  [[nodiscard]] bool finished() const noexcept override { return Nghttp2Codec::finished(); }
  [[nodiscard]] bool peer_is_leaving() const noexcept override {
    return Nghttp2Codec::peer_is_leaving();
  }
  [[nodiscard]] bool is_leaving() const noexcept override { return Nghttp2Codec::is_leaving(); }
  [[nodiscard]] std::uint64_t glitches(H2Glitch glitch) const noexcept override {
    return score().count(glitch);
  }
  [[nodiscard]] std::uint64_t glitches() const noexcept override { return score().count(); }
  [[nodiscard]] std::uint32_t outbound_frames_peak() const noexcept override {
    return Nghttp2Codec::outbound_frames_peak();
  }
  [[nodiscard]] SessionStats stats(TimePoint now) const noexcept override {
    return Nghttp2Codec::stats(now);
  }

 protected:
  using Nghttp2Codec::Nghttp2Codec;
};

}  // namespace weir::inline v0::http::h2
