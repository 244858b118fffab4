#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weir/base/time.h"
#include "weir/experimental/io/timer.h"

#include "upstream/client_stream.h"

namespace weir::inline v0::upstream {

class Dispatcher;
struct PoolEndpoint;

/// Losers that may finish. How much time a hedge saved is known only when the attempt that it beat
/// is answered, so a few of them are not cancelled: HedgeConfig::losers_per_finish.
///
/// Promises: at most kMax at once, each for kPatience at the longest; then it is ended like any
/// other loser, and what is recorded is a lower bound. Nothing of an answer is kept.
/// Thread-safety: its loop's thread. Cost: no allocation.
/// Lifetime: that of its dispatcher; stop() before.
class LoserWatch {
 public:
  static constexpr std::size_t kMax = 4;
  static constexpr Duration kPatience = std::chrono::seconds(1);

  explicit LoserWatch(Dispatcher& dispatcher) noexcept;
  LoserWatch(const LoserWatch&) = delete;
  LoserWatch& operator=(const LoserWatch&) = delete;

  /// A hedge won against a primary whose request is sent and unanswered: whether that one may
  /// finish.
  [[nodiscard]] bool wants_next() noexcept;
  /// Takes the stream over, after wants_next().
  void begin(PoolEndpoint& endpoint, ClientStream& stream) noexcept;
  /// Ends all of them.
  void stop() noexcept;

 private:
  class Watched final : private ClientStreamEvents {
   public:
    Watched() noexcept : timer_(io::Timer::Fired::to<&Watched::on_timer>(*this)) {}

    void begin(Dispatcher& dispatcher, PoolEndpoint& endpoint, ClientStream& stream) noexcept;
    void give_up() noexcept;
    [[nodiscard]] bool active() const noexcept { return stream_ != nullptr; }

   private:
    bool on_stream_head(const ResponseHead& head) override;
    std::size_t on_stream_body(std::string_view bytes) override { return bytes.size(); }
    bool on_stream_trailers(const http::HeaderList& /*trailers*/) override { return true; }
    std::size_t keep_body(std::string_view /*bytes*/) noexcept override { return 0; }
    bool keep_trailers(const http::HeaderList& /*trailers*/) noexcept override { return true; }
    void on_stream_complete() override { end(); }
    void on_stream_writable() override {}
    void on_stream_failed(const StreamFailure& failure) override;
    void on_timer(TimePoint now);
    void record() noexcept;
    void end() noexcept;

    Dispatcher* dispatcher_ = nullptr;
    PoolEndpoint* endpoint_ = nullptr;
    ClientStream* stream_ = nullptr;
    TimePoint beaten_at_{};
    io::Timer timer_;
  };

  Dispatcher& dispatcher_;
  std::uint64_t beaten_ = 0;
  std::array<Watched, kMax> watched_;
};

}  // namespace weir::inline v0::upstream
