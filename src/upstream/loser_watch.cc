#include "loser_watch.h"

#include <algorithm>
#include <utility>

#include "pool_endpoint.h"
#include "upstream/dispatcher.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

LoserWatch::LoserWatch(Dispatcher& dispatcher) noexcept : dispatcher_(dispatcher) {}

bool LoserWatch::wants_next() noexcept {
  const std::uint32_t every = dispatcher_.hedge().losers_per_finish;
  if (every == 0 || ++beaten_ % every != 0 || dispatcher_.upstream().overloaded()) return false;
  return std::any_of(watched_.begin(), watched_.end(), [](const auto& w) { return !w.active(); });
}

void LoserWatch::begin(PoolEndpoint& endpoint, ClientStream& stream) noexcept {
  for (Watched& watched : watched_) {
    if (!watched.active()) return watched.begin(dispatcher_, endpoint, stream);
  }
}

void LoserWatch::stop() noexcept {
  for (Watched& watched : watched_) {
    if (watched.active()) watched.give_up();
  }
}

void LoserWatch::Watched::begin(Dispatcher& dispatcher, PoolEndpoint& endpoint,
                                ClientStream& stream) noexcept {
  dispatcher_ = &dispatcher;
  endpoint_ = &endpoint;
  stream_ = &stream;
  beaten_at_ = dispatcher.now();
  Dispatcher::pin(endpoint);
  endpoint.shared->add_in_flight();  // the endpoint works on it
  dispatcher.loop().arm(timer_, beaten_at_ + kPatience);
  stream.hand_over(*this);
}

bool LoserWatch::Watched::on_stream_head(const ResponseHead& head) {
  if (head.informational) return true;
  record();
  ClientStream* stream = stream_;
  end();
  static_cast<void>(stream->lose());
  return false;
}

/// An endpoint that fails would not have answered: the hedge saved the request, not time.
void LoserWatch::Watched::on_stream_failed(const StreamFailure& /*failure*/) {
  end();
}

void LoserWatch::Watched::on_timer(TimePoint /*now*/) {
  record();
  give_up();
}

void LoserWatch::Watched::give_up() noexcept {
  ClientStream* stream = stream_;
  end();
  static_cast<void>(stream->lose());
}

void LoserWatch::Watched::record() noexcept {
  const Duration saved = dispatcher_->now() - beaten_at_;
  dispatcher_->upstream()
      .counters(dispatcher_->loop_index())
      .hedge_saved.observe(to_seconds(saved));
}

void LoserWatch::Watched::end() noexcept {
  dispatcher_->upstream()
      .counters(dispatcher_->loop_index())
      .loser_ns.add(static_cast<std::uint64_t>((dispatcher_->now() - beaten_at_).count()));
  dispatcher_->loop().cancel(timer_);
  endpoint_->shared->sub_in_flight();
  dispatcher_->unpin(*endpoint_);
  stream_ = nullptr;
}

}  // namespace weir::inline v0::upstream
