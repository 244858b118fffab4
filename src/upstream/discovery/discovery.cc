#include "upstream/discovery/discovery.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "upstream/discovery/make_source.h"
#include "upstream/upstream.h"

namespace weir::inline v0::upstream {

Discovery::Discovery(Setup setup) : setup_(std::move(setup)), rng_(setup_.rng) {
  patience_.on_fire(io::Timer::Fired::to<&Discovery::on_patience>(*this));
}

Discovery::~Discovery() {
  WEIR_ASSERT(entries_.empty());
}

void Discovery::set_sources(const std::vector<SourceSpec>& specs) {
  std::vector<Entry> before = std::exchange(entries_, {});
  for (const SourceSpec& spec : specs) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const Entry& entry) {
      return entry.source != nullptr && entry.spec.source() == spec.source();
    });
    if (same != before.end()) {
      entries_.push_back(std::move(*same));
      before.erase(same);
      entries_.back().spec = spec;
    } else {
      entries_.push_back(make_entry(spec));
    }
  }
  for (Entry& entry : before) {
    if (entry.source != nullptr) entry.source->stop();
  }
  setup_.loop.arm(patience_, setup_.loop.now() + setup_.patience);
  publish();
  for (Entry& entry : entries_) {
    if (entry.source == nullptr || std::exchange(entry.started, true)) continue;
    entry.source->start(setup_.loop, *this);
  }
}

Discovery::Entry Discovery::make_entry(const SourceSpec& spec) {
  Entry entry;
  entry.spec = spec;
  if (!spec.dynamic()) {
    entry.list = {endpoint_at(spec)};
    entry.known = true;
    return entry;
  }
  entry.source = make_source(spec, setup_.resolver(), {.rng = rng_.fork(), .times = setup_.times});
  return entry;
}

void Discovery::stop() noexcept {
  setup_.loop.cancel(patience_);
  for (Entry& entry : entries_) {
    if (entry.source != nullptr) entry.source->stop();
  }
  entries_.clear();
}

bool Discovery::settled() const noexcept {
  const auto answered = [](const Entry& entry) { return entry.known || entry.failed; };
  return !patience_.armed() || std::all_of(entries_.begin(), entries_.end(), answered);
}

void Discovery::refresh() noexcept {
  for (Entry& entry : entries_) {
    if (entry.source != nullptr) entry.source->refresh();
  }
}

std::vector<SourceStatus> Discovery::status() const {
  std::vector<SourceStatus> all;
  for (const Entry& entry : entries_) {
    if (entry.source != nullptr) {
      all.push_back(entry.source->status());
      continue;
    }
    SourceStatus& one = all.emplace_back();
    one.source = entry.spec.source();
    one.endpoints = entry.list.size();
    one.known = true;
  }
  return all;
}

Discovery::Entry& Discovery::entry_of(const EndpointSource& source) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.source.get() == &source;
  });
  WEIR_ASSERT(found != entries_.end());
  return *found;
}

void Discovery::on_endpoints(const EndpointSource& from, std::vector<DiscoveredEndpoint> all) {
  Entry& entry = entry_of(from);
  entry.list = std::move(all);
  entry.known = true;
  publish();
}

void Discovery::on_source_error(const EndpointSource& from, const std::string& text) {
  Entry& entry = entry_of(from);
  const bool first = !entry.known && !entry.failed;
  entry.failed = !text.empty();
  if (setup_.on_error) setup_.on_error(entry.spec.source(), text);
  if (first) publish();
}

void Discovery::on_patience(TimePoint) {
  publish();
}

void Discovery::publish() {
  const auto known = [](const Entry& entry) { return entry.known; };
  if (!settled()) return;
  setup_.upstream.set_discovered();
  if (std::none_of(entries_.begin(), entries_.end(), known)) return;
  std::vector<DiscoveredEndpoint> all;
  for (const Entry& entry : entries_) {
    const EndpointAttributes& said = entry.spec.attributes;
    for (DiscoveredEndpoint one : entry.list) {
      const auto same = [&](const DiscoveredEndpoint& other) {
        return other.address == one.address;
      };
      if (std::any_of(all.begin(), all.end(), same)) continue;
      if (said.weight != 1) one.weight = said.weight;
      if (!said.zone.empty()) one.zone = said.zone;
      one.draining = one.draining || said.draining;
      all.push_back(std::move(one));
    }
  }
  if (std::exchange(published_, true) && all == last_) return;
  last_ = all;
  setup_.upstream.set_endpoints(std::move(all), setup_.loop.now());
}

}  // namespace weir::inline v0::upstream
