#pragma once

#include "http/h2/nghttp2_codec.h"

namespace weir::inline v0::http::h2 {

/// The library's callbacks, run inside mem_recv and mem_send. They record events and submit frames;
/// none of them calls the owner.
struct Nghttp2Codec::Callbacks {
  static Nghttp2Codec& of(void* user) noexcept { return *static_cast<Nghttp2Codec*>(user); }

  static int on_begin_headers(nghttp2_session* library, const nghttp2_frame* frame, void* user);
  static int on_header(nghttp2_session* library, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                       nghttp2_rcbuf* value, std::uint8_t flags, void* user);
  static int on_data(nghttp2_session* library, std::uint8_t flags, std::int32_t id,
                     const std::uint8_t* data, std::size_t bytes, void* user);
  static int on_frame_recv(nghttp2_session* library, const nghttp2_frame* frame, void* user);
  static int on_invalid_frame(nghttp2_session* library, const nghttp2_frame* frame, int error,
                              void* user);
  static int on_frame_send(nghttp2_session* library, const nghttp2_frame* frame, void* user);
  static int on_stream_close(nghttp2_session* library, std::int32_t id, std::uint32_t code,
                             void* user);
  static int on_send_data(nghttp2_session* library, nghttp2_frame* frame,
                          const std::uint8_t* header, std::size_t bytes,
                          nghttp2_data_source* source, void* user);
};

}  // namespace weir::inline v0::http::h2
