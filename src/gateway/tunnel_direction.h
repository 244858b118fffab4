#pragma once

#include <string_view>

#include "http/websocket_frames.h"

namespace weir::inline v0::gateway {

/// One direction of a WebSocket tunnel, and where a drain may end it: between two frames.
///
///   stage     bytes                                         leaves by
///   kOpen     all pass                                      leave() → kLeaving, or kCut at a
///   boundary kLeaving  those of the frame that has begun pass        its end → kCut kCut      none
///   passes; a Close frame of ours is due     told() → kTold kTold     none passes –
///
/// If the sender's own Close frame has passed, none of ours is due: kCut is skipped.
/// Thread-safety: a value. Cost: as WebSocketFrames.
class TunnelDirection {
 public:
  /// The part of `bytes`, which came next, that may be passed on. The rest is to be dropped.
  [[nodiscard]] std::string_view may_pass(std::string_view bytes) const noexcept;
  /// These bytes, the first of what may pass, were passed on.
  void passed(std::string_view bytes) noexcept;
  /// These were dropped.
  void dropped(std::string_view bytes) noexcept { frames_.pass(bytes); }

  void leave() noexcept;
  [[nodiscard]] bool close_due() const noexcept { return stage_ == Stage::kCut; }
  void told() noexcept { stage_ = Stage::kTold; }

  /// Nothing passes any more.
  [[nodiscard]] bool cut() const noexcept { return stage_ >= Stage::kCut; }
  /// Its receiver has a Close frame, whoever sent it.
  [[nodiscard]] bool ended() const noexcept { return stage_ == Stage::kTold; }
  /// The sender of this direction has sent a Close frame, passed or dropped.
  [[nodiscard]] bool closed_by_sender() const noexcept { return frames_.closed(); }

 private:
  enum class Stage : unsigned char { kOpen, kLeaving, kCut, kTold };

  void cut_at_boundary() noexcept;

  http::WebSocketFrames frames_;
  Stage stage_ = Stage::kOpen;
};

}  // namespace weir::inline v0::gateway
