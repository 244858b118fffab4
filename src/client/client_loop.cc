#include "client_loop.h"

#include "client_core.h"

namespace weir::inline v0::inline client {

ClientLoop::ClientLoop(const Setup& setup)
    : core_(setup.core),
      loop_(setup.loop),
      in_flight_max_(setup.in_flight_max),
      rng_(setup.rng),
      dispatcher_({.loop = setup.loop,
                   .loop_index = setup.index,
                   .upstream = core_.upstream(),
                   .memory = core_.memory(),
                   .response_limits = core_.response_limits(),
                   .rng = rng_.fork()}),
      pump_(io::Callback<>::to<&ClientLoop::pump>(*this)) {}

std::string_view ClientLoop::authority() const noexcept {
  return core_.authority();
}

std::size_t ClientLoop::response_body_max() const noexcept {
  return core_.config().response_body_max;
}

Duration ClientLoop::advice() const {
  return core_.advice().delay;
}

void ClientLoop::note_answer(bool overloaded) noexcept {
  core_.note_answer(overloaded);
}

void ClientLoop::note_retry() noexcept {
  core_.note_retry();
}

// ---- the lists

void ClientLoop::add_queued(ClientCall& call) noexcept {
  queued_[index_of(call.priority())].push_back(call);
  loop_.defer(pump_);
}

void ClientLoop::add_backing_off(ClientCall& call) noexcept {
  backing_off_.push_back(call);
}

void ClientLoop::remove(ClientCall& call) noexcept {
  if (under_way_.contains(call)) {
    under_way_.remove(call);
    if (call.priority() != Priority::kCritical) --in_flight_;
    loop_.defer(pump_);
  } else if (backing_off_.contains(call)) {
    backing_off_.remove(call);
  } else if (call.hook.linked()) {
    queued_[index_of(call.priority())].remove(call);
  }
}

void ClientLoop::release(ClientCall& call, bool answered) {
  core_.release(call, answered);
}

ClientLoop::Calls* ClientLoop::next_queue() noexcept {
  for (const Priority priority : kPriorities) {
    Calls& calls = queued_[index_of(priority)];
    const bool may = priority == Priority::kCritical || in_flight_ < in_flight_max_;
    if (may && !calls.empty()) return &calls;
  }
  return nullptr;
}

// A request that ends at once, and its callback, change the lists: they are looked at again.
void ClientLoop::pump() {
  while (Calls* calls = next_queue()) {
    ClientCall& call = *calls->front();
    calls->remove(call);
    under_way_.push_back(call);
    if (call.priority() != Priority::kCritical) ++in_flight_;
    call.begin();
  }
}

// ---- the end

void ClientLoop::cancel_all(Calls& calls) {
  while (ClientCall* call = calls.front()) call->cancel(ClientErrorKind::kClosed);
}

void ClientLoop::close() {
  closing_ = true;
  for (Calls& calls : queued_) cancel_all(calls);
  cancel_all(backing_off_);
  cancel_all(under_way_);
  dispatcher_.stop();
}

}  // namespace weir::inline v0::inline client
