#include "hint_delivery.h"

#include <algorithm>
#include <utility>

#include "weir/embed/clock.h"

namespace valuestore {
namespace {

constexpr weir::Duration kTick = std::chrono::milliseconds(20);

weir::OutgoingConfig queue_config(const HintDeliveryConfig& config, std::size_t nodes) {
  weir::OutgoingConfig outgoing;
  outgoing.queue_size = static_cast<std::uint32_t>(config.queued_max + config.repairs_max);
  outgoing.overflow_size = 0;  // a hint that finds no place stays where it is, on the disk
  outgoing.in_flight_max = config.window;
  outgoing.max_destinations = static_cast<std::uint32_t>(nodes);
  outgoing.destination_bytes_max = weir::mib(16);
  return outgoing;
}

}  // namespace

HintDelivery::HintDelivery(const HintDeliveryConfig& config, const Placement& placement,
                           std::size_t self, Storage& storage, WriterThread& writer,
                           SendParcel send, IsUp is_up, FetchAgain fetch_again)
    : config_(config),
      placement_(placement),
      self_(self),
      storage_(storage),
      writer_(writer),
      send_(std::move(send)),
      is_up_(std::move(is_up)),
      fetch_again_(std::move(fetch_again)),
      directory_(std::make_unique<weir::OutgoingDirectory>(queue_config(config, placement.size()))),
      queues_(std::make_unique<weir::OutgoingQueues>(*directory_)),
      routes_(placement.size()),
      thread_([this] { run(); }) {}

HintDelivery::~HintDelivery() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void HintDelivery::repair(std::size_t node, const ValueKey& key, const Record& record, bool root) {
  auto parcel = std::make_unique<Parcel>();
  parcel->node = node;
  parcel->key = key;
  parcel->record = record;
  parcel->root = root;
  {
    const std::lock_guard lock(mutex_);
    if (repairs_.size() >= config_.repairs_max) return;
    repairs_.push_back(std::move(parcel));
  }
  wake_.notify_one();
}

HintDelivery::Counts HintDelivery::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void HintDelivery::run() {
  for (bool stop = false; !stop;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kTick, [this] { return stop_ || !done_.empty(); });
      stop = stop_;
    }
    const weir::TimePoint now = weir::embed::now();
    finish_done(now);
    if (!stop) step(now);
  }
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return on_the_way_ == 0; });
  lock.unlock();
  finish_done(weir::embed::now());
  queues_->close();
}

void HintDelivery::step(weir::TimePoint now) {
  queue_repairs(now);
  for (std::size_t node = 0; node < routes_.size(); ++node) {
    if (node == self_ || now < routes_[node].quiet_until || !is_up_(node)) continue;
    queue_hints(node, now);
    send(node, now);
  }
}

void HintDelivery::queue_repairs(weir::TimePoint now) {
  std::deque<std::unique_ptr<Parcel>> repairs;
  {
    const std::lock_guard lock(mutex_);
    repairs.swap(repairs_);
  }
  for (auto& repair : repairs) queue(std::move(repair), now);
}

void HintDelivery::queue_hints(std::size_t node, weir::TimePoint now) {
  Route& route = routes_[node];
  if (route.open > config_.queued_max / 2 || now < route.look_at) return;
  // Without hints the store is not looked into, but once more for the count of the unreadable.
  if (storage_.hint_count() == 0 && !route.after && route.reported == 0) return;
  {
    const std::lock_guard lock(mutex_);
    ++counts_.looks;
  }
  const std::string& owner = placement_.names()[node];
  const std::vector<ValueKey> keys =
      storage_.hints(owner, route.after, config_.queued_max - route.open);
  if (keys.empty()) {
    // From the start again, once what was sent is confirmed: it holds what has failed.
    if (route.open == 0) begin_again(route, now);
    return;
  }
  for (const ValueKey& key : keys) {
    route.after = key;
    auto record = storage_.read(key);
    if (!record) {
      if (record.error() == Storage::Miss::kAbsent) continue;  // swept with its hint just now
      note_unreadable(node, key);
      continue;
    }
    auto parcel = std::make_unique<Parcel>();
    parcel->node = node;
    parcel->key = key;
    parcel->record = *std::move(record);
    parcel->root = storage_.is_root(key);
    parcel->is_hint = true;
    if (!queue(std::move(parcel), now)) return;
  }
}

void HintDelivery::begin_again(Route& route, weir::TimePoint now) {
  route.after.reset();
  route.look_at = now + (route.unreadable > 0 ? config_.pause : config_.rescan);
  const std::lock_guard lock(mutex_);
  counts_.unreadable += route.unreadable;
  counts_.unreadable -= std::exchange(route.reported, route.unreadable);
  route.unreadable = 0;
}

void HintDelivery::note_unreadable(std::size_t node, const ValueKey& key) {
  if (++routes_[node].unreadable <= config_.healed_max) fetch_again_(key, node);
}

bool HintDelivery::queue(std::unique_ptr<Parcel> parcel, weir::TimePoint now) {
  parcel->priority = weir::Priority::kLow;
  parcel->bytes = parcel->record.payload.size();
  if (!queues_->put(parcel->node, *parcel, now).accepted()) return false;
  if (parcel->is_hint) ++routes_[parcel->node].open;
  parcels_.push_back(std::move(parcel));
  return true;
}

void HintDelivery::send(std::size_t node, weir::TimePoint now) {
  Route& route = routes_[node];
  const double passed = std::chrono::duration<double>(now - route.filled_at).count();
  const double burst = std::max(1.0, 0.05 * config_.parcels_per_second);
  route.tokens = std::min(burst, route.tokens + passed * config_.parcels_per_second);
  route.filled_at = now;
  while (route.tokens >= 1) {
    auto* const parcel = static_cast<Parcel*>(queues_->get(node, now));
    if (parcel == nullptr) return;
    route.tokens -= 1;
    {
      const std::lock_guard lock(mutex_);
      ++on_the_way_;
    }
    send_(*parcel, [this, parcel](bool delivered) { done(parcel, delivered); });
  }
}

void HintDelivery::done(Parcel* parcel, bool delivered) {
  // Notified under the lock: after it the delivery may be destroyed.
  const std::lock_guard lock(mutex_);
  done_.emplace_back(parcel, delivered);
  --on_the_way_;
  wake_.notify_one();
}

void HintDelivery::finish_done(weir::TimePoint now) {
  std::vector<std::pair<Parcel*, bool>> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const auto& [parcel, delivered] : done) finish(*parcel, delivered, now);
}

void HintDelivery::finish(Parcel& parcel, bool delivered, weir::TimePoint now) {
  queues_->finish(parcel, delivered ? weir::OutgoingEnd::kSent : weir::OutgoingEnd::kFailed);
  Route& route = routes_[parcel.node];
  if (parcel.is_hint) --route.open;
  if (!delivered) route.quiet_until = now + config_.pause;
  {
    const std::lock_guard lock(mutex_);
    ++(!delivered ? counts_.failed : parcel.is_hint ? counts_.delivered : counts_.repaired);
  }
  if (delivered && parcel.is_hint) {
    Change change;
    change.kind = Change::Kind::kDropHint;
    change.key = parcel.key;
    change.hint_for = placement_.names()[parcel.node];
    change.epoch = parcel.record.epoch;
    change.root = parcel.root;
    change.keep_value = placement_.owns(self_, parcel.key);
    writer_.submit(std::move(change), [](ChangeEnd) {});  // if it fails, it is delivered again
  }
  forget(parcel);
}

void HintDelivery::forget(Parcel& parcel) {
  const auto place = std::find_if(parcels_.begin(), parcels_.end(),
                                  [&](const auto& each) { return each.get() == &parcel; });
  parcels_.erase(place);
}

}  // namespace valuestore
