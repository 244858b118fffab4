// Sends messages to destinations through OutgoingQueues and prints what became of them, as JSON.
//
//   weir_test_fanout --to HOST:PORT … [--rate N] [--seconds N] [--burst N] [--low PERCENT]
//                    [--critical-every N] [--ack-ms N] [--drain-s N]
//
// To each destination: first `burst` messages at once, before any of them is sent; then `rate` a
// second. Of these, `low` percent are low, the others normal; every Nth is critical besides.
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>

#include "weir/embed/clock.h"
#include "weir/policy/outgoing_state.h"

#include "datagram_sender.h"

namespace {

struct Options {
  std::vector<sockaddr_in> to;
  std::vector<std::string> names;
  std::uint32_t rate = 0;
  std::uint32_t seconds = 0;
  std::uint32_t burst = 0;
  std::uint32_t low = 0;
  std::uint32_t critical_every = 0;
  std::uint32_t ack_ms = 1000;
  std::uint32_t drain_s = 2;
};

bool add_destination(Options& options, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  sockaddr_in name{};
  name.sin_family = AF_INET;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (colon == std::string::npos ||
      std::from_chars(text.data() + colon + 1, end, port).ec != std::errc() ||
      ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &name.sin_addr) != 1) {
    return false;
  }
  name.sin_port = htons(port);
  options.to.push_back(name);
  options.names.push_back(text);
  return true;
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const std::string_view text = argv[i + 1];
    if (key == "--to") {
      if (!add_destination(options, std::string(text))) return false;
      continue;
    }
    std::uint32_t* value = key == "--rate"             ? &options.rate
                           : key == "--seconds"        ? &options.seconds
                           : key == "--burst"          ? &options.burst
                           : key == "--low"            ? &options.low
                           : key == "--critical-every" ? &options.critical_every
                           : key == "--ack-ms"         ? &options.ack_ms
                           : key == "--drain-s"        ? &options.drain_s
                                                       : nullptr;
    if (value == nullptr) return false;
    if (std::from_chars(text.data(), text.data() + text.size(), *value).ec != std::errc()) {
      return false;
    }
  }
  return argc % 2 == 1 && !options.to.empty();
}

class Schedule {
 public:
  Schedule(DatagramSender& sender, const Options& options) : sender_(sender), options_(options) {}

  void run() {
    const weir::TimePoint begin = weir::embed::now();
    for (std::uint32_t n = 0; n < options_.burst; ++n) offer_to_all(begin);
    const weir::TimePoint end = begin + std::chrono::seconds(options_.seconds);
    const weir::Duration between =
        weir::Duration(std::chrono::seconds(1)) / std::max(options_.rate, 1U);
    weir::TimePoint due = options_.rate > 0 ? begin : end;
    for (weir::TimePoint now = begin; now < end + std::chrono::seconds(options_.drain_s);
         now = weir::embed::now()) {
      for (; due < std::min(now, end); due += between) offer_to_all(now);
      sender_.pump(now);
      sender_.take_answers();
      if (now >= end && sender_.idle()) break;
    }
    sender_.close();
  }

 private:
  void offer_to_all(weir::TimePoint now) {
    ++made_;
    const bool low = made_ % 100 < options_.low;
    const bool critical = options_.critical_every > 0 && made_ % options_.critical_every == 0;
    for (std::size_t i = 0; i < options_.to.size(); ++i) {
      const auto priority = low ? weir::Priority::kLow : weir::Priority::kNormal;
      static_cast<void>(sender_.offer(i, priority, now));
      if (critical) static_cast<void>(sender_.offer(i, weir::Priority::kCritical, now));
    }
  }

  DatagramSender& sender_;
  const Options& options_;
  std::uint64_t made_ = 0;
};

void print(const DatagramSender& sender, const Options& options) {
  const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("[");
  for (std::size_t i = 0; i < options.to.size(); ++i) {
    const weir::OutgoingStats s = sender.stats(i);
    const DatagramSender::Seen& seen = sender.seen(i);
    std::printf(
        "%s{\"to\": \"%s\", \"worst\": \"%s\", \"offered\": %llu, \"sent\": %llu, "
        "\"failed\": %llu, \"dropped\": %llu, \"refused\": %llu, \"expired\": %llu, "
        "\"critical_refused\": %llu",
        i > 0 ? ",\n " : "", options.names[i].c_str(), name_of(seen.worst).data(), n(s.offered),
        n(s.sent), n(s.failed), n(s.dropped), n(s.refused), n(s.expired), n(s.critical_refused));
    for (const weir::Priority priority : weir::kPriorities) {
      const DatagramSender::ClassCounts& counts = seen.classes[index_of(priority)];
      std::printf(", \"%s\": [%llu, %llu]", name_of(priority).data(), n(counts.offered),
                  n(counts.sent));
    }
    std::printf("}");
  }
  std::printf("]\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fputs("weir_test_fanout --to HOST:PORT …; see the source\n", stderr);
    return 2;
  }
  DatagramSender sender(options.to, {.ack_timeout = std::chrono::milliseconds(options.ack_ms),
                                     .useless_after = std::chrono::seconds(60)});
  Schedule(sender, options).run();
  print(sender, options);
  return 0;
}
