#include "housekeeping.h"

namespace weir::inline v0::gateway {

Housekeeping::Housekeeping(GatewayCore& core, OperatorLog& log, Discoveries& discoveries,
                           io::Loop& loop)
    : core_(core),
      watch_(log),
      discoveries_(discoveries),
      loop_(loop),
      memory_interval_(core.config_in_force().memory.poll_interval) {
  expire_.on_fire(io::Timer::Fired::to<&Housekeeping::expire>(*this));
  memory_.on_fire(io::Timer::Fired::to<&Housekeeping::read_memory>(*this));
}

void Housekeeping::start() {
  expire(loop_.now());
  read_memory(loop_.now());
}

void Housekeeping::stop() {
  loop_.cancel(expire_);
  loop_.cancel(memory_);
}

void Housekeeping::expire(TimePoint now) {
  constexpr Duration kExpireEvery = std::chrono::milliseconds(50);
  const std::shared_ptr<const UpstreamSet> upstreams = core_.upstreams.in_force();
  core_.controller.expire(now);
  watch_.look(*upstreams, now);
  discoveries_.look();
  for (const auto& one : upstreams->all) {
    one->upstream.set_limit(core_.controller.scope_stats(one->scope(), now).limit);
    core_.controller.set_queues_overflow(one->scope(), one->upstream.queues_overflow());
    one->upstream.set_overloaded(core_.controller.is_overloaded(one->scope(), now));
  }
  loop_.arm(expire_, now + kExpireEvery);
}

void Housekeeping::read_memory(TimePoint now) {
  const MemoryRules rules = core_.controller.config().memory;
  const io::MemoryReading reading =
      reader_.read(now, rules.memory_pressure_threshold - rules.leave_margin);
  core_.controller.set_memory(reading.usage, reading.readable);
  loop_.arm(memory_, now + memory_interval_);
}

}  // namespace weir::inline v0::gateway
