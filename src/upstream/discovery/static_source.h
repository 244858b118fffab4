#pragma once

#include <string>
#include <vector>

#include "weir/experimental/io/timer.h"

#include "discovery/published_set.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// A list that does not change.
class StaticSource final : public EndpointSource {
 public:
  StaticSource(std::string text, std::vector<DiscoveredEndpoint> endpoints)
      : endpoints_(std::move(endpoints)), published_(*this, std::move(text)) {}
  ~StaticSource() override { stop(); }

  void start(io::Loop& loop, EndpointSink& sink) override {
    loop_ = &loop;
    published_.attach(loop, sink);
    loop.arm(timer_, loop.now());
  }
  void stop() noexcept override {
    if (loop_ != nullptr) loop_->cancel(timer_);
    published_.detach();
  }
  const SourceStatus& status() const noexcept override { return published_.status(); }

 private:
  void on_timer(TimePoint /*now*/) { published_.publish({.endpoints = endpoints_, .cut = false}); }

  std::vector<DiscoveredEndpoint> endpoints_;
  PublishedSet published_;
  io::Loop* loop_ = nullptr;
  io::Timer timer_{io::Timer::Fired::to<&StaticSource::on_timer>(*this)};
};

}  // namespace weir::inline v0::upstream
