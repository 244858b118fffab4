#include "scenario_reader.h"

// `[[sender]]`: a node that sends messages through its outgoing queues.

namespace weir::inline v0::sim {

namespace {
constexpr std::uint32_t kAny = ~std::uint32_t{0};  // validate() knows the ranges
}  // namespace

void read_sender(NodeReader& reader, SenderSpec& out) {
  reader.text("name", out.name);
  reader.whole("queue_size", out.queues.queue_size, 0U, kAny);
  reader.whole("overflow_size", out.queues.overflow_size, 0U, kAny);
  reader.whole("critical_size", out.queues.critical_size, 0U, kAny);
  reader.whole("max_destinations", out.queues.max_destinations, 0U, kAny);
  reader.whole("in_flight_max", out.queues.in_flight_max, 0U, kAny);
  std::uint64_t destination = out.queues.destination_bytes_max.bytes();
  std::uint64_t total = out.queues.total_bytes_max.bytes();
  reader.byte_size("destination_bytes_max", destination);
  reader.byte_size("total_bytes_max", total);
  out.queues.destination_bytes_max = ByteSize(destination);
  out.queues.total_bytes_max = ByteSize(total);
  reader.boolean("shared", out.shared);
  reader.adopt(out.queues.validate());
}

}  // namespace weir::inline v0::sim
