#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/experimental/io/loop.h"

#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// What a source has told its sink: the part that all sources have in common.
///
/// Promises: a list that differs only in its order is not published again; an error is told once.
/// Thread-safety: the source's loop.
class PublishedSet {
 public:
  PublishedSet(const EndpointSource& source, std::string text) : source_(source) {
    status_.source = std::move(text);
  }

  void attach(io::Loop& loop, EndpointSink& sink) noexcept {
    loop_ = &loop;
    sink_ = &sink;
  }
  void detach() noexcept { sink_ = nullptr; }
  [[nodiscard]] bool attached() const noexcept { return sink_ != nullptr; }

  struct List {
    std::vector<DiscoveredEndpoint> endpoints;
    bool cut = false;  // there are more
  };
  /// A lookup or a read gave this list. `error` tells what failed on the way; empty: nothing.
  void publish(List list, const std::string& error = {});
  /// A lookup or a read failed: nothing changes.
  void fail(const std::string& error);

  void set_reason(std::string_view reason) { status_.reason = reason; }
  void set_next(TimePoint next) noexcept { status_.next = next; }
  [[nodiscard]] const SourceStatus& status() const noexcept { return status_; }

 private:
  void tell(const std::string& error);

  const EndpointSource& source_;
  io::Loop* loop_ = nullptr;
  EndpointSink* sink_ = nullptr;
  SourceStatus status_;
  std::vector<DiscoveredEndpoint> sorted_;  // of the last list
};

}  // namespace weir::inline v0::upstream
