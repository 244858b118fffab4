#include <utility>

#include "connection_pool.h"
#include "upstream/call.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream_memory.h"

// The response of a call, and the part of it that the owner has not accepted yet. After a call into
// events_ this object may be destroyed: such calls come last, or gone_ tells.

namespace weir::inline v0::upstream {

bool Call::on_attempt_head(Attempt& attempt, const ResponseHead& head) {
  if (head.informational) {
    // It might be of an attempt that does not answer in the end.
    if (racing() && other_than(attempt).active()) return true;
    if (!events_.on_upstream_interim(head)) return true;
    committed_ = true;
    if (racing()) note_no_hedge(policy::NoHedge::kAnswerStarted);
    leave_race();
    return true;
  }
  if (racing()) {
    if (const std::optional<bool> accepted = answered_in_race(attempt, head)) return *accepted;
  } else if (!committed_ && !race_ && retried_instead(head)) {
    return true;
  }
  if (std::exchange(joins_race_, false)) note_no_hedge(policy::NoHedge::kNotNeeded);
  if (!std::exchange(committed_, true) || sent_at_ == TimePoint{}) sent_at_ = attempt.sent_at();
  tunnel_ = head.tunnel;
  if (tunnel_) lift_deadlines();
  if (attempt.request_sent()) {
    release_request();
  } else if (body_.is_open()) {
    body_.stop_keeping(attempt.position());
  }
  return events_.on_upstream_head(head);
}

void Call::on_attempt_complete() {
  if (kept_.attached()) {
    received_ = true;
    return events_.on_upstream_received();
  }
  detach();
  events_.on_upstream_complete();
}

void Call::resume() noexcept {
  if (kept_.attached() && !deliver_kept()) return;
  if (!received_) return attempt_->resume();
  detach();
  events_.on_upstream_complete();
}

// ---- the part of the response that the owner has not accepted

/// The blocks are those of request heads. New requests need them: responses may have them while a
/// quarter is free.
bool Call::open_kept() noexcept {
  if (kept_.attached()) return true;
  io::SharedBlocks& blocks = dispatcher_->memory().heads;
  if (tunnel_ || blocks.free_count() <= blocks.capacity() / 4) return false;
  std::byte* block = blocks.acquire(dispatcher_->loop_index(), io::Access::kOrdinary);
  if (block == nullptr) return false;
  const std::size_t for_trailers = blocks.block_bytes() / 4;
  kept_.attach(reinterpret_cast<char*>(block),
               {.body_bytes = blocks.block_bytes() - for_trailers, .field_bytes = for_trailers});
  return true;
}

void Call::drop_kept() noexcept {
  if (char* block = kept_.detach()) {
    dispatcher_->memory().heads.release(dispatcher_->loop_index(),
                                        reinterpret_cast<std::byte*>(block));
  }
}

http::HeaderList Call::kept_trailers() const noexcept {
  if (!active() || !kept_.attached() || !kept_.has_trailers()) return {};
  return kept_.trailers(dispatcher_->pool().field_storage());
}

std::size_t Call::keep_body(std::string_view bytes) noexcept {
  if (!open_kept()) return 0;
  const std::string_view piece = bytes.substr(0, kept_.room());
  kept_.put_body(piece);
  return piece.size();
}

bool Call::keep_trailers(const http::HeaderList& trailers) noexcept {
  return open_kept() && kept_.put_trailers(trailers);
}

/// False: the owner has not accepted all of it, or the call has ended.
bool Call::deliver_kept() noexcept {
  bool gone = false;
  gone_ = &gone;
  bool all = true;
  while (all && !kept_.body().empty()) {
    const std::string_view bytes = kept_.body();
    const std::size_t taken = events_.on_upstream_body(bytes);
    if (gone) return false;
    kept_.consume(taken);
    all = taken == bytes.size();
  }
  if (all && kept_.has_trailers()) {
    all = events_.on_upstream_trailers(kept_.trailers(dispatcher_->pool().field_storage()));
    if (gone) return false;
  }
  gone_ = nullptr;
  if (all) drop_kept();
  return all;
}

}  // namespace weir::inline v0::upstream
