#include "http/h2/session_kit.h"

#include <new>

#include <nghttp2/nghttp2.h>

#include "weir/base/assert.h"

#include "http/h2/nghttp2_session.h"

namespace weir::inline v0::http::h2 {
namespace {

/// The guard counts these frames, so the library's own limits are set too high to be reached.
constexpr std::size_t kFarOff = 1'000'000;

nghttp2_option* make_option(const H2Limits& limits) {
  nghttp2_option* option = nullptr;
  WEIR_ASSERT(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);  // windows are opened as bodies are granted
  nghttp2_option_set_no_recv_client_magic(option, 1);   // the session checks the preface
  nghttp2_option_set_no_http_messaging(option, 1);      // HeaderBlock checks messages
  nghttp2_option_set_no_closed_streams(option, 1);  // ClosedStreams records them, in two bits each
  nghttp2_option_set_max_deflate_dynamic_table_size(option, 4096);
  nghttp2_option_set_max_settings(option, limits.settings_entries_max);
  nghttp2_option_set_max_outbound_ack(option, kFarOff);
  nghttp2_option_set_max_continuations(option, kFarOff);  // the library counts reads, not frames
  nghttp2_option_set_stream_reset_rate_limit(option, kFarOff * kFarOff, kFarOff * kFarOff);
  return option;
}

}  // namespace

SessionKit::SessionKit(const H2Limits& limits) : limits_(limits), option_(make_option(limits)) {
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
  const std::size_t table = StreamTable::bytes_for(limits_.concurrent_streams_max);
  if (memory.size() < kOwn + table + RegionHeap::kRegionBytesMin) return nullptr;
  auto* session = ::new (static_cast<void*>(memory.data()))
      Nghttp2Session({limits_, callbacks_, option_}, memory.subspan(kOwn), events);
  SessionPtr owned(session);
  if (!session->start(now)) return nullptr;
  return owned;
}

}  // namespace weir::inline v0::http::h2
