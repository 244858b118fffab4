#include "memory/conn_read_buf.h"

#include <cstring>

namespace weir::inline v0::inline server {

std::size_t ReadSpan::compact() noexcept {
  const std::size_t left = len_ - consumed_;
  if (consumed_ == 0) return 0;
  if (left > 0) std::memmove(memory_.data(), memory_.data() + consumed_, left);
  len_ = left;
  consumed_ = 0;
  return left;
}

}  // namespace weir::inline v0::inline server
