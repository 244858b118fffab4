#include "acceptor.h"

#include <algorithm>
#include <utility>

#include "shard.h"

namespace weir::inline v0::inline server {
/// How long new connections stay in the kernel's queue while an idle one is closed. Longer than
/// kJustAnswered, for which a connection is not closed.
constexpr Duration kRoomPatience = std::chrono::milliseconds(100);

Acceptor::Acceptor(ServerShared& shared, io::Loop& loop, CriticalPeer is_critical, Rng rng)
    : shared_(shared),
      loop_(loop),
      is_critical_(std::move(is_critical)),
      rng_(rng),
      room_task_(io::Callback<>::to<&Acceptor::room_made>(*this)),
      room_timer_(io::Timer::Fired::to<&Acceptor::look_again>(*this)),
      refused_(loop, shared.config.head_bytes_max) {}

Acceptor::~Acceptor() = default;

Result<void, io::IoError> Acceptor::add(io::Fd listening, const io::ListenOptions& options,
                                        ListenerKind kind) {
  auto listener = std::make_unique<io::Listener>();
  ListenerSink& plain = kind.proxied ? cleartext_proxied_ : cleartext_;
  ListenerSink& secure = kind.proxied ? encrypted_proxied_ : encrypted_;
  Result<void, io::IoError> started =
      listener->start(loop_, std::move(listening), options, kind.tls ? secure : plain);
  if (!started) return started;
  if (kind.paused) listener->pause();
  listeners_.push_back(std::move(listener));
  ++open_listeners_;
  return {};
}

void Acceptor::resume() {
  if (closing_) return;
  for (auto& listener : listeners_) listener->resume();
}

std::vector<io::Fd> Acceptor::duplicate_listeners() const {
  std::vector<io::Fd> all;
  if (closing_) return all;
  for (const auto& listener : listeners_) all.push_back(listener->duplicate());
  return all;
}

void Acceptor::share_listener(std::size_t index, bool shared) {
  if (!closing_) listeners_.at(index)->set_shared(shared);
}

void Acceptor::close(Queued queued, io::Callback<> done) {
  if (closing_) return done();
  closing_ = true;
  closed_ = done;
  shared_.connections.unwant();
  loop_.cancel(room_timer_);
  ++open_listeners_;  // until each was told to close
  const auto one_closed = io::Callback<>::to<&Acceptor::on_listener_closed>(*this);
  for (auto& listener : listeners_) {
    queued == Queued::kServed ? listener->drain(one_closed) : listener->close(one_closed);
  }
  on_listener_closed();
}

bool Acceptor::ready_to_accept() {
  if (shared_.connections.has_room(false)) return true;
  std::uint64_t idle = 0;
  for (const LoopShard* shard : shared_.shards) idle += shard->counters().idle.get();
  if (idle == 0 || loop_.now() < refuse_until_) return true;  // accept and refuse
  make_room();
  return false;
}

/// A place will be free soon: new connections stay in the kernel's queue until then.
void Acceptor::make_room() {
  for (auto& listener : listeners_) listener->pause();
  waits_until_ = loop_.now() + kRoomPatience;
  shared_.connections.want(loop_, room_task_);
  ask_for_room();
}

void Acceptor::ask_for_room() {
  // The idle connection may get a request before it is closed: then check again, perhaps refuse.
  loop_.arm(room_timer_, loop_.now() + shared_.config.tick);
  request_room();
}

void Acceptor::request_room() {
  for (LoopShard* shard : shared_.shards) {
    if (shard->counters().idle.get() > 0) shard->request_room();
  }
}

void Acceptor::look_again(TimePoint now) {
  if (!shared_.connections.has_room(false)) {
    if (now < waits_until_) return ask_for_room();
    refuse_until_ = now + kRoomPatience;
  }
  room_made();
}

void Acceptor::room_made() {
  loop_.cancel(room_timer_);
  resume();
}

bool Acceptor::refuse_by_pressure(RefuseReason& reason) {
  const PressureDecision decision = judge_pressure(shared_, loop_.now());
  if (!decision.accept_connection) {
    reason = RefuseReason::kPressure;
    return true;
  }
  reason = RefuseReason::kPressureShare;
  return rng_.chance(decision.connection_shed_probability);
}

void Acceptor::on_accepted(io::Fd fd, Connection::Arrival arrival) {
  if (arrival.proxied && !trusted(arrival.peer)) return refuse_sender(arrival.peer);  // closes it
  arrival.critical = !arrival.proxied && is_critical_ && is_critical_(arrival.peer);
  RefuseReason reason = RefuseReason::kPressure;
  if (!arrival.critical && refuse_by_pressure(reason)) {
    return refuse_early(std::move(fd), reason, arrival);
  }
  LoopShard* least = *std::min_element(
      shared_.shards.begin(), shared_.shards.end(),
      [](const LoopShard* a, const LoopShard* b) { return a->load() < b->load(); });
  const Result<Connection*, RefuseReason> connection = shared_.connections.acquire(*least, arrival);
  if (!connection) return refuse_early(std::move(fd), connection.error(), arrival);
  least->hand_over(std::move(fd), **connection);
}

bool Acceptor::trusted(const io::Address& sender) const {
  if (sender.family == io::Family::kUnix) return true;
  const auto& asked = shared_.proxy_senders.trusted;
  return asked && asked(sender);
}

void Acceptor::refuse_sender(const io::Address& sender) {
  LoopCounters& counters = shared_.shards.front()->counters();
  counters.count(RefuseReason::kUntrusted);
  counters.count(ProxyResult::kUntrusted);
  const auto& told = shared_.proxy_senders.on_refused;
  if (told) told({.sender = sender, .result = ProxyResult::kUntrusted, .why = {}});
}

void Acceptor::refuse_early(io::Fd fd, RefuseReason reason, const Connection::Arrival& arrival) {
  LoopCounters& counters = shared_.shards.front()->counters();
  counters.count(reason);
  if (arrival.critical) ++counters.critical_shed;
  if (arrival.tls) return io::reset_on_close(fd.get());  // a TLS client cannot read a 503
  refused_.add(std::move(fd));
}

void Acceptor::on_accept_failed(io::IoError error) {
  LoopCounters& counters = shared_.shards.front()->counters();
  counters.count(error == io::IoError::kNoFds ? RefuseReason::kNoFds : RefuseReason::kNoMemory);
  request_room();  // idle connections hold descriptors that are needed now
}

}  // namespace weir::inline v0::inline server
