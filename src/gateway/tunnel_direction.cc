#include "tunnel_direction.h"

namespace weir::inline v0::gateway {

std::string_view TunnelDirection::may_pass(std::string_view bytes) const noexcept {
  if (stage_ == Stage::kOpen) return bytes;
  if (cut()) return {};
  return bytes.substr(0, frames_.rest_of_frame(bytes));
}

void TunnelDirection::passed(std::string_view bytes) noexcept {
  frames_.pass(bytes);
  if (stage_ == Stage::kLeaving) cut_at_boundary();
}

void TunnelDirection::leave() noexcept {
  if (stage_ != Stage::kOpen) return;
  stage_ = Stage::kLeaving;
  cut_at_boundary();
}

void TunnelDirection::cut_at_boundary() noexcept {
  if (frames_.at_boundary()) stage_ = frames_.closed() ? Stage::kTold : Stage::kCut;
}

}  // namespace weir::inline v0::gateway
