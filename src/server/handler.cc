#include "weir/experimental/server/handler.h"

#include "weir/experimental/server/stream.h"

namespace weir::inline v0::inline server {

bool Handler::is_critical(const ServerRequest&, bool critical_peer) {
  return critical_peer;
}
void Handler::on_header(ServerStream&, const http::HeaderView&) {}
void Handler::on_body(ServerStream&, const http::BodyChunk&) {}
void Handler::on_trailers(ServerStream&, const http::HeaderList&) {}
void Handler::on_complete(ServerStream&) {}
void Handler::on_writable(ServerStream&) {}

void Handler::on_arena(ServerStream& stream, Arena* arena) {
  if (arena == nullptr) stream.send_503();
}

void Handler::on_finished(ServerStream&) {}
void Handler::on_abort(ServerStream&, CloseReason) {}

}  // namespace weir::inline v0::inline server
