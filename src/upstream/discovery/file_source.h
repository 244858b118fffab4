#pragma once

#include <string>

#include "weir/base/time.h"
#include "weir/experimental/io/timer.h"

#include "discovery/published_set.h"
#include "io/file_watch.h"
#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// A file of endpoints (endpoint_file.h), looked at once per interval (a second). A file that is
/// missing or wrong is an error and removes nothing.
class FileSource final : public EndpointSource {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);

  FileSource(std::string text, std::string path, Duration interval = kInterval)
      : file_(std::move(path)), interval_(interval), published_(*this, std::move(text)) {}
  ~FileSource() override { stop(); }

  void start(io::Loop& loop, EndpointSink& sink) override;
  void stop() noexcept override;
  const SourceStatus& status() const noexcept override { return published_.status(); }

 private:
  void on_timer(TimePoint now);
  void read();

  io::FileWatch file_;
  Duration interval_;
  PublishedSet published_;
  io::Loop* loop_ = nullptr;
  io::Timer timer_{io::Timer::Fired::to<&FileSource::on_timer>(*this)};
};

}  // namespace weir::inline v0::upstream
