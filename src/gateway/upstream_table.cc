#include "upstream_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "weir/base/assert.h"
#include "weir/experimental/config/diff.h"
#include "weir/experimental/io/clock.h"

#include "upstream/discovery/make_source.h"

namespace weir::inline v0::gateway {
namespace {

/// The endpoints of an upstream that has addresses only; otherwise none yet.
std::vector<upstream::DiscoveredEndpoint> fixed_endpoints(const upstream::UpstreamConfig& config) {
  std::vector<upstream::DiscoveredEndpoint> all;
  for (const upstream::SourceSpec& spec : config.endpoints) {
    if (spec.dynamic()) return {};
    upstream::DiscoveredEndpoint& one = all.emplace_back(endpoint_at(spec));
    one.weight = spec.attributes.weight;
    one.zone = spec.attributes.zone;
    one.draining = spec.attributes.draining;
  }
  return all;
}

const upstream::UpstreamConfig* upstream_named(const config::Config& config,
                                               std::string_view name) {
  const auto found = std::find_if(config.upstreams.begin(), config.upstreams.end(),
                                  [&](const auto& upstream) { return upstream.name == name; });
  return found == config.upstreams.end() ? nullptr : &*found;
}

/// One per route.
std::uint32_t read_classes_of(const std::string& name, const config::Config& config) {
  const auto routes =
      std::count_if(config.routes.begin(), config.routes.end(),
                    [&](const RouteConfig& route) { return route.upstream == name; });
  return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(routes, upstream::kReadClassesMax));
}

/// Whether the upstream of this name is the same object after a change.
bool stays(const UpstreamTable::Change& change, std::string_view name) {
  const upstream::UpstreamConfig* before = upstream_named(change.before, name);
  const upstream::UpstreamConfig* after = upstream_named(change.after, name);
  return before != nullptr && after != nullptr && !config::needs_replacing(*before, *after);
}

}  // namespace

UpstreamTable::UpstreamTable(Setup setup)
    : setup_(std::move(setup)), in_force_(std::make_shared<const UpstreamSet>()) {
  // The controller has a scope from the start. Here each one belongs to an upstream.
  setup_.controller.remove_scope(ScopeId::kFirst);
}

UpstreamTable::~UpstreamTable() {
  in_force_.reset();
  WEIR_ASSERT(upstreams_.empty() && places_.empty());
}

std::shared_ptr<const UpstreamSet> UpstreamTable::in_force() const {
  const std::scoped_lock lock(mutex_);
  return in_force_;
}

std::string UpstreamTable::objection(const Change& change) const {
  UpstreamRoom needed;
  std::set<std::string_view> names;
  std::string finishing;
  for (const upstream::UpstreamConfig& upstream : change.after.upstreams) {
    needed += UpstreamRoom::of(upstream);
    names.insert(upstream.name);
  }
  const std::scoped_lock lock(mutex_);
  for (const ServedUpstream* one : upstreams_) {
    const bool left = one->left.load();
    if (!left && stays(change, one->name())) continue;
    needed += UpstreamRoom::of(one->upstream.config());
    if (left) finishing = one->name();
  }
  for (const auto& place : places_) names.insert(place->name);
  needed.upstreams = static_cast<std::uint32_t>(names.size());
  return room_objection(needed, setup_.room, change.before, finishing);
}

std::shared_ptr<const UpstreamSet> UpstreamTable::made_for(
    const Change& change, const std::vector<io::TlsContext::Ptr>& tls) {
  const std::shared_ptr<const UpstreamSet> now = in_force();
  auto next = std::make_shared<UpstreamSet>();
  for (std::size_t i = 0; i < change.after.upstreams.size(); ++i) {
    const upstream::UpstreamConfig& config = change.after.upstreams[i];
    std::shared_ptr<ServedUpstream> same =
        stays(change, config.name) ? now->find(config.name) : nullptr;
    next->all.push_back(same != nullptr
                            ? std::move(same)
                            : make(config, change.after, tls.empty() ? nullptr : tls[i]));
  }
  return next;
}

std::shared_ptr<ServedUpstream> UpstreamTable::make(const upstream::UpstreamConfig& config,
                                                    const config::Config& all,
                                                    io::TlsContext::Ptr tls) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<ServedUpstream> made(
      new ServedUpstream(place_for(config.name, all.limit_of(config)),
                         {.config = config,
                          .loops = setup_.loops,
                          .reserved = setup_.reserved,
                          .rng = setup_.rng.fork(),
                          .observer = setup_.observer,
                          .tls = std::move(tls),
                          .read_classes = read_classes_of(config.name, all)},
                         fixed_endpoints(config), io::monotonic_now()),
      [this](ServedUpstream* upstream) { destroy(upstream); });
  made->upstream.set_budget_rules(budget_rules_of(config, all.hedge));
  made->upstream.set_hedge(all.hedge);
  upstreams_.push_back(made.get());
  return made;
}

UpstreamPlace& UpstreamTable::place_for(const std::string& name, const LimitConfig& limit) {
  for (const auto& place : places_) {
    if (place->name == name) return *place;
  }
  const ScopeId scope = setup_.controller.add_scope(name, limit);
  places_.push_back(std::make_unique<UpstreamPlace>(name, scope, setup_.loops));
  return *places_.back();
}

// Called where the last user lets it go. The scope is free before the place is, so that there are
// never more scopes than places.
void UpstreamTable::destroy(ServedUpstream* upstream) {
  const std::unique_ptr<ServedUpstream> ended(upstream);
  std::unique_ptr<UpstreamPlace> unused;
  {
    const std::scoped_lock lock(mutex_);
    std::erase(upstreams_, upstream);
    const auto shares = [&](const ServedUpstream* one) { return &one->place == &ended->place; };
    if (std::any_of(upstreams_.begin(), upstreams_.end(), shares)) return;
    const auto at = std::find_if(places_.begin(), places_.end(),
                                 [&](const auto& place) { return place.get() == &ended->place; });
    unused = std::move(*at);
    places_.erase(at);
    setup_.controller.remove_scope(unused->scope);
    for (const auto& counters : unused->counters) gone_.add(*counters);
  }
  if (ended->left.load() && setup_.on_gone) setup_.on_gone(unused->name);
}

void UpstreamTable::put_in_force(std::shared_ptr<const UpstreamSet> next) {
  const std::shared_ptr<const UpstreamSet> before = in_force();
  for (const auto& one : before->all) {
    if (!next->has(*one)) one->left.store(true);
  }
  const std::scoped_lock lock(mutex_);
  in_force_ = std::move(next);
}

std::vector<UpstreamTable::Leaving> UpstreamTable::leaving() const {
  std::vector<Leaving> all;
  const std::scoped_lock lock(mutex_);
  for (const ServedUpstream* one : upstreams_) {
    if (one->left.load()) {
      all.push_back({.name = one->name(), .connections = one->upstream.connections()});
    }
  }
  return all;
}

RequestTotals UpstreamTable::totals() const {
  const std::scoped_lock lock(mutex_);
  RequestTotals all = gone_;
  for (const auto& place : places_) {
    for (const auto& counters : place->counters) all.add(*counters);
  }
  return all;
}

}  // namespace weir::inline v0::gateway
