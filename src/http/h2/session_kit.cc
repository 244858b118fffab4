#include "http/h2/session_kit.h"

#include <new>

#include <nghttp2/nghttp2.h>

#include "weir/base/assert.h"

#include "http/h2/nghttp2_session.h"

namespace weir::inline v0::http::h2 {

SessionKit::SessionKit(const H2Limits& limits)
    : limits_(limits), option_(Nghttp2Codec::make_option(limits)) {
  WEIR_ASSERT(nghttp2_session_callbacks_new(&callbacks_) == 0);
  Nghttp2Session::set_callbacks(callbacks_);
}

SessionKit::~SessionKit() {
  nghttp2_option_del(option_);
  nghttp2_session_callbacks_del(callbacks_);
}

SessionPtr SessionKit::make(std::span<std::byte> memory, SessionEvents& events,
                            TimePoint now) const {
  constexpr std::size_t kOwn = (sizeof(Nghttp2Session) + 15) & ~std::size_t{15};
  static_assert(alignof(Nghttp2Session) <= 16);
  WEIR_ASSERT(reinterpret_cast<std::uintptr_t>(memory.data()) % 16 == 0);
  if (memory.size() < kOwn + Nghttp2Codec::bytes_min(limits_)) return nullptr;
  auto* session = ::new (static_cast<void*>(memory.data()))
      Nghttp2Session({limits_, callbacks_, option_}, memory.subspan(kOwn), events);
  SessionPtr owned(session);
  if (!session->start(now)) return nullptr;
  return owned;
}

}  // namespace weir::inline v0::http::h2
