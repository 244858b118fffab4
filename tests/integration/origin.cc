// A service with a known capacity: k workers, each busy for a fixed time with one request, or for a
// random time (uniform between --service-ms and --service-ms-max, or lognormal with the mean
// --service-ms and the deviation --deviation-ms); requests that arrive while all are busy are
// queued, and are processed even if their client disconnected. --stragglers-pct of the requests
// take
// --straggler-factor times as long.
//
//   origin --workers 8 --service-ms 20     prints "port N"; 0: at once, without workers
//   GET any path, or a unary call of gRPC over HTTP/2 in cleartext
//   GET /origin/stats                      counters since the last such call, as JSON
//
// It measures real elapsed time, so a busy machine changes the reported capacity, not the verdict
// of a test.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include <signal.h>

#include "weir/base/rng.h"
#include "weir/experimental/io/clock.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/server.h"
#include "weir/experimental/server/stream.h"

namespace {

using weir::Duration;
using weir::TimePoint;

struct Manner {
  unsigned workers = 8;
  unsigned service_ms = 20;
  unsigned service_ms_max = 0;
  unsigned deviation_ms = 0;
  unsigned stragglers_pct = 0;
  unsigned straggler_factor = 10;
  unsigned seed = 1;
  unsigned port = 0;
};

class Work final : public weir::Handler {
 public:
  Work(const Manner& manner, weir::io::Loop& loop) : manner_(manner), loop_(loop) {
    for (unsigned i = 0; i < manner.workers; ++i) workers_.emplace_back(*this);
    since_ = weir::io::monotonic_now();
  }
  ~Work() override {
    for (Worker& worker : workers_) loop_.cancel(worker.timer);
  }

  void on_headers(weir::ServerStream& stream, const weir::ServerRequest& request) override {
    const bool asks = request.meta.path == "/origin/stats";
    const std::string_view type = request.headers->value(weir::http::FieldId::kContentType);
    stream.user_data = asks ? &asked_ : type.starts_with("application/grpc") ? &called_ : nullptr;
  }
  void on_complete(weir::ServerStream& stream) override {
    if (stream.user_data == &asked_) return report(stream);
    if (manner_.service_ms == 0 && manner_.service_ms_max == 0) return serve(stream);
    line_.push_back(&stream);
    if (line_.size() > longest_) longest_ = line_.size();
    give_out();
  }
  void on_abort(weir::ServerStream& stream, weir::CloseReason) override {
    for (weir::ServerStream*& one : line_) {
      if (one == &stream) one = nullptr;
    }
    for (Worker& worker : workers_) {
      if (worker.stream == &stream) worker.stream = nullptr;
    }
  }

 private:
  struct Worker {
    explicit Worker(Work& owner) : work(owner) {
      timer.on_fire(weir::io::Timer::Fired::to<&Worker::done>(*this));
    }
    void done(TimePoint) { work.finish(*this); }

    Work& work;
    weir::io::Timer timer;
    weir::ServerStream* stream = nullptr;
    TimePoint began{};
    bool busy = false;
  };

  void give_out() {
    for (Worker& worker : workers_) {
      if (line_.empty()) return;
      if (worker.busy) continue;
      worker.busy = true;
      worker.stream = line_.front();
      line_.pop_front();
      worker.began = weir::io::monotonic_now();
      loop_.arm(worker.timer, loop_.refresh_now() + service_time());
    }
  }

  Duration service_time() {
    const bool straggles = rng_.chance(manner_.stragglers_pct / 100.0);
    return usual_time() * (straggles ? manner_.straggler_factor : 1U);
  }
  Duration usual_time() {
    if (manner_.deviation_ms > 0) {
      const double ratio = static_cast<double>(manner_.deviation_ms) / manner_.service_ms;
      const double variance = std::log1p(ratio * ratio);
      std::lognormal_distribution<double> draw(std::log(manner_.service_ms) - variance / 2,
                                               std::sqrt(variance));
      return std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(draw(random_)));
    }
    const Duration least = std::chrono::milliseconds(manner_.service_ms);
    const Duration most = std::chrono::milliseconds(manner_.service_ms_max);
    return most > least ? rng_.between(least, most) : least;
  }

  void finish(Worker& worker) {
    busy_ += weir::io::monotonic_now() - std::max(worker.began, since_);
    if (worker.stream != nullptr) {
      serve(*worker.stream);
    } else {
      ++wasted_;
    }
    worker.stream = nullptr;
    worker.busy = false;
    give_out();
  }

  void serve(weir::ServerStream& stream) {
    ++served_;
    stream.user_data == &called_ ? answer_call(stream) : answer(stream);
  }

  static void answer(weir::ServerStream& stream) {
    static_cast<void>(
        stream.send_response({.status = 200, .fields = {}, .content_length = {}}, "served\n"));
  }

  /// A message of 123 bytes: 128 with its prefix.
  static void answer_call(weir::ServerStream& stream) {
    static constexpr std::array kType{weir::ResponseField{"content-type", "application/grpc"}};
    static constexpr std::array kStatus{weir::ResponseField{"grpc-status", "0"}};
    static const std::string kMessage = std::string("\0\0\0\0\173", 5) + std::string(123, 'x');
    static_cast<void>(stream.send_headers({.status = 200, .fields = kType, .content_length = {}}));
    static_cast<void>(stream.send_data(kMessage));
    static_cast<void>(stream.send_trailers(kStatus));
  }

  void report(weir::ServerStream& stream) {
    const TimePoint now = weir::io::monotonic_now();
    for (const Worker& worker : workers_) {
      if (worker.busy) busy_ += now - std::max(worker.began, since_);
    }
    std::array<char, 256> text;
    const int size = std::snprintf(
        text.data(), text.size(),
        "{\"seconds\":%.6f,\"workers\":%u,\"busy_seconds\":%.6f,\"served\":%llu,\"wasted\":%llu,"
        "\"longest_line\":%zu}\n",
        weir::to_seconds(now - since_), manner_.workers, weir::to_seconds(busy_), served_, wasted_,
        longest_);
    static_cast<void>(stream.send_response({.status = 200, .fields = {}, .content_length = {}},
                                           {text.data(), static_cast<std::size_t>(size)}));
    since_ = now;
    busy_ = Duration(0);
    served_ = wasted_ = 0;
    longest_ = 0;
  }

  const Manner manner_;
  weir::io::Loop& loop_;
  weir::Rng rng_{manner_.seed};
  std::mt19937_64 random_{manner_.seed};
  std::deque<Worker> workers_;
  std::deque<weir::ServerStream*> line_;
  TimePoint since_{};
  Duration busy_{};
  unsigned long long served_ = 0;
  unsigned long long wasted_ = 0;
  std::size_t longest_ = 0;
  char asked_ = 0;
  char called_ = 0;
};

bool read_option(char** argument, const char* name, unsigned& value) {
  if (std::strcmp(argument[0], name) != 0 || argument[1] == nullptr) return false;
  const char* end = argument[1] + std::strlen(argument[1]);
  return std::from_chars(argument[1], end, value).ptr == end;
}

}  // namespace

int main(int argc, char** argv) {
  Manner manner;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!read_option(argv + i, "--workers", manner.workers) &&
        !read_option(argv + i, "--service-ms", manner.service_ms) &&
        !read_option(argv + i, "--service-ms-max", manner.service_ms_max) &&
        !read_option(argv + i, "--deviation-ms", manner.deviation_ms) &&
        !read_option(argv + i, "--stragglers-pct", manner.stragglers_pct) &&
        !read_option(argv + i, "--straggler-factor", manner.straggler_factor) &&
        !read_option(argv + i, "--seed", manner.seed) &&
        !read_option(argv + i, "--port", manner.port)) {
      std::cerr << "origin: --workers N, --service-ms N, --service-ms-max N, --deviation-ms N, "
                   "--stragglers-pct N, --straggler-factor N, --seed N, --port N\n";
      return 2;
    }
  }
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  weir::ServerConfig config;
  config.listen = {"127.0.0.1:" + std::to_string(manner.port)};
  config.loops = 1;
  config.max_connections = 8192;
  config.streams_max = 8192;
  config.tcp_write_buffer_pool_size = 16384;
  config.conn_decrypted_buf_size = 8 * 1024;
  config.head_bytes_max = 8 * 1024;
  config.tcp_write_buffer_size = 4096;
  config.arena_pool_size = 0;
  config.reserved_arenas = 0;
  config.pending_stream_pool_size = 0;
  weir::Server server(config, [&](const weir::HandlerPlace& place) {
    return std::make_unique<Work>(manner, place.loop);
  });
  if (!server.start()) {
    std::cerr << "origin: cannot listen\n";
    return 1;
  }
  std::cout << "port " << server.port() << std::endl;
  int signal_number = 0;
  ::sigwait(&ends, &signal_number);
  server.stop();
  return 0;
}
