#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "http/h2/nghttp2_facade.h"
#include "http/h2/session.h"

namespace weir::inline v0::http::h2 {

/// A Session that uses libnghttp2; see Nghttp2Codec.
class Nghttp2Session final : public Nghttp2Facade<Session> {
 public:
  Nghttp2Session(const Shared& shared, std::span<std::byte> memory, SessionEvents& events);

  /// Call it first; false if the memory is too small.
  [[nodiscard]] bool start(TimePoint now);

  [[nodiscard]] SubmitStatus submit_head(StreamId id, const ResponseStart& start) override;
  void announce_shutdown() override;
  [[nodiscard]] TimePoint next_expiry() const noexcept override;
  void expire(TimePoint now) override;

 private:
  static constexpr std::size_t kSettingsMax = 5;

  [[nodiscard]] int begin_block(StreamId id) override;
  void on_received(const nghttp2_frame& frame) override;
  void on_sent(const nghttp2_frame& frame, Stream& stream) override;
  void on_closing(Stream& /*stream*/, ErrorCode /*code*/) override {}
  void tell_block(Stream& stream) override;
  void tell_body(Stream& stream) override;
  void tell_connection() override {}
  void tell_end(StreamId id, const Stream& stream) override;
  void tell_leaving() override {}
  void refuse_block(Stream& stream, BlockFault fault) override;

  void tell_request(Stream& stream);
  void build_settings() noexcept;
  [[nodiscard]] SubmitStatus submit(Stream& stream, const ResponseStart& start);
  void answer(Stream& stream, std::uint16_t status);

  // Streams whose response was sent before the request was complete: see linger().
  void linger(Stream& stream);
  void end_lingering(StreamId id) noexcept;
  void cut_off_if_large(Stream& stream);
  void cut_off_lingering(TimePoint now);

  SessionEvents* events_;
  std::array<std::uint8_t, kFrameHeaderBytes + kSettingsMax * 6> settings_{};
  TimePoint linger_until_{};  // zero: no stream lingers
};

}  // namespace weir::inline v0::http::h2
