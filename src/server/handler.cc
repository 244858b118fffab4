#include "weir/experimental/server/handler.h"

#include "weir/experimental/server/stream.h"

namespace weir::inline v0::inline server {

void Handler::on_arena(ServerStream& stream, Arena* arena) {
  if (arena == nullptr) stream.send_503();
}

}  // namespace weir::inline v0::inline server
