#include "discovery/file_source.h"

#include <utility>

#include "discovery/endpoint_file.h"

namespace weir::inline v0::upstream {

void FileSource::start(io::Loop& loop, EndpointSink& sink) {
  loop_ = &loop;
  published_.attach(loop, sink);
  loop.arm(timer_, loop.now());
}

void FileSource::stop() noexcept {
  if (loop_ != nullptr) loop_->cancel(timer_);
  published_.detach();
}

void FileSource::on_timer(TimePoint now) {
  published_.set_next(now + interval_);
  loop_->arm(timer_, now + interval_);
  if (file_.changed()) read();
}

void FileSource::read() {
  auto text = file_.read(kEndpointFileBytesMax);
  if (!text) return published_.fail(file_.path() + ": " + text.error());
  auto endpoints = parse_endpoint_file(*text);
  if (!endpoints) return published_.fail(file_.path() + ": " + endpoints.error());
  published_.publish({.endpoints = *std::move(endpoints), .cut = false});
}

}  // namespace weir::inline v0::upstream
