#include "http/h2/client_session_kit.h"

#include <new>

#include <nghttp2/nghttp2.h>

#include "weir/base/assert.h"

#include "http/h2/nghttp2_client_session.h"

namespace weir::inline v0::http::h2 {

ClientSessionKit::ClientSessionKit(const H2Limits& limits, const ClientOptions& options)
    : limits_(limits), options_(options), option_(Nghttp2Codec::make_option(limits)) {
  WEIR_ASSERT(options.informational_max <= ClientOptions::kInformationalCap);
  WEIR_ASSERT(nghttp2_session_callbacks_new(&callbacks_) == 0);
  Nghttp2ClientSession::set_callbacks(callbacks_);
  nghttp2_option_set_peer_max_concurrent_streams(option_, options.streams_before_settings_max);
}

ClientSessionKit::~ClientSessionKit() {
  nghttp2_option_del(option_);
  nghttp2_session_callbacks_del(callbacks_);
}

ClientSessionPtr ClientSessionKit::make(std::span<std::byte> memory, ClientEvents& events,
                                        TimePoint now) const {
  constexpr std::size_t kOwn = (sizeof(Nghttp2ClientSession) + 15) & ~std::size_t{15};
  static_assert(alignof(Nghttp2ClientSession) <= 16);
  WEIR_ASSERT(reinterpret_cast<std::uintptr_t>(memory.data()) % 16 == 0);
  if (memory.size() < kOwn + Nghttp2Codec::bytes_min(limits_)) return nullptr;
  auto* session = ::new (static_cast<void*>(memory.data())) Nghttp2ClientSession(
      {{limits_, callbacks_, option_}, options_, memory.subspan(kOwn)}, events);
  ClientSessionPtr owned(session);
  if (!session->start(now)) return nullptr;
  return owned;
}

}  // namespace weir::inline v0::http::h2
