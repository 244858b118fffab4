#include "io/dns_resolver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dns_channel.h"
#include "route.h"

namespace weir::inline v0::io {
namespace {

constexpr std::uint32_t kTimeoutsMax = 4;  // in a row; then the channel is opened anew

DnsResult loopback(Family family) {
  DnsRecords out;
  out.ttl = std::chrono::minutes(1);
  Address address;
  address.family = family;
  if (family == Family::kV4) address.ip = {127, 0, 0, 1};
  if (family == Family::kV6) address.ip[15] = 1;
  out.addresses.push_back(address);
  return out;
}

bool any_routed(const DnsResult& found) {
  return found && std::any_of(found->addresses.begin(), found->addresses.end(), has_route);
}

bool has_failed(const DnsResult& result) {
  return !result && result.error() != DnsError::kNoRecords && result.error() != DnsError::kNotFound;
}

/// Leaves out addresses without a route; a family without any other is one without records. If all
/// are without, they are all there is to try, unless the other family might have had better ones.
void keep_routed(DnsAddresses& found) {
  const bool others = any_routed(found.v4) || any_routed(found.v6);
  if (!others && !has_failed(found.v4) && !has_failed(found.v6)) return;
  for (DnsResult* family : {&found.v4, &found.v6}) {
    if (!*family) continue;
    std::erase_if((*family)->addresses, [](const Address& one) { return !has_route(one); });
    if ((*family)->empty()) *family = unexpected(DnsError::kNoRecords);
  }
}

/// RFC 6761, 6.3.
bool is_localhost(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name == "localhost" || name.ends_with(".localhost");
}

}  // namespace

/// A lookup asks for one candidate name after the other: first A and AAAA, or SRV, of the first.
struct DnsLookup::State {
  std::vector<std::string> candidates;
  std::size_t next = 0;
  std::vector<DnsType> types;
  std::array<DnsResult, 2> results{DnsResult(unexpected(DnsError::kTimeout)),
                                   DnsResult(unexpected(DnsError::kTimeout))};
  std::array<bool, 2> was_empty{};  // a candidate exists without records of this type
  std::size_t missing = 0;          // answers to come
  bool final = false;               // decided without DNS
  bool cancelled = false;
  std::function<void(DnsAddresses)> addresses_done;
  std::function<void(DnsResult)> services_done;

  /// Whether the answers about this candidate end the search.
  [[nodiscard]] bool decided() const noexcept {
    if (final || next >= candidates.size()) return true;
    return std::any_of(
        results.begin(), results.begin() + static_cast<std::ptrdiff_t>(types.size()),
        [](const DnsResult& one) {
          return one || (one.error() != DnsError::kNotFound && one.error() != DnsError::kNoRecords);
        });
  }

  /// A name that exists somewhere in the search without records is not one that does not exist.
  DnsResult result(std::size_t i) {
    const bool not_found = !results[i] && results[i].error() == DnsError::kNotFound;
    if (not_found && was_empty[i]) return unexpected(DnsError::kNoRecords);
    return std::move(results[i]);
  }

  void finish() {
    if (addresses_done) {
      std::exchange(addresses_done, nullptr)({.v4 = result(0), .v6 = result(1)});
    } else {
      std::exchange(services_done, nullptr)(result(0));
    }
  }
};

/// Everything that a lookup decides is done from a timer of its own: callbacks of c-ares only
/// store, so users may start, cancel and destroy in theirs what they like.
struct DnsResolver::Impl : std::enable_shared_from_this<DnsResolver::Impl> {
  using Lookup = std::shared_ptr<DnsLookup::State>;

  Impl(Loop& loop_given, DnsConfig config_given)
      : loop(loop_given), config(std::move(config_given)), channel(loop, config) {}

  Loop& loop;
  DnsConfig config;
  std::vector<Lookup> ready;  // all answers are there
  Timer step_timer{Timer::Fired::to<&Impl::step>(*this)};
  std::uint64_t restarts = 0;
  bool over = false;
  DnsChannel channel;  // last: it ends first, and its queries with it

  void close() {
    over = true;
    loop.cancel(step_timer);
    ready.clear();
  }

  void is_ready(Lookup lookup) {
    if (over) return;
    ready.push_back(std::move(lookup));
    loop.arm(step_timer, loop.now());
  }

  void ask(const Lookup& lookup) {
    const std::string& name = lookup->candidates[lookup->next++];
    lookup->missing = lookup->types.size();
    for (std::size_t i = 0; i < lookup->types.size(); ++i) {
      channel.query({.name = name, .type = lookup->types[i]}, [this, lookup, i](DnsResult result) {
        lookup->results[i] = std::move(result);
        const bool empty =
            !lookup->results[i] && lookup->results[i].error() == DnsError::kNoRecords;
        lookup->was_empty[i] = lookup->was_empty[i] || empty;
        if (--lookup->missing == 0) is_ready(lookup);
      });
    }
  }

  void step(TimePoint /*now*/) {
    const std::shared_ptr<Impl> alive = shared_from_this();  // a callback may destroy the resolver
    if (channel.timeouts_in_a_row() >= kTimeoutsMax && channel.outstanding() == 0) {
      channel.restart();
      ++restarts;
    }
    for (const Lookup& lookup : std::exchange(ready, {})) {
      if (lookup->cancelled || over) continue;
      if (lookup->decided()) {
        lookup->cancelled = true;  // of the DnsLookup that may be used for another one now
        lookup->finish();
      } else {
        ask(lookup);
      }
    }
  }
};

void DnsLookup::cancel() noexcept {
  if (state_ == nullptr) return;
  state_->cancelled = true;
  state_.reset();
}

DnsResolver::DnsResolver(Loop& loop, DnsConfig config)
    : impl_(std::make_shared<Impl>(loop, std::move(config))) {}

DnsResolver::~DnsResolver() {
  impl_->close();
}

void DnsResolver::find_addresses(DnsLookup& lookup, const std::string& host,
                                 std::function<void(DnsAddresses)> done) {
  lookup.cancel();
  lookup.state_ = std::make_shared<DnsLookup::State>();
  DnsLookup::State& state = *lookup.state_;
  state.types = {DnsType::kA, DnsType::kAaaa};
  const bool routed_only = impl_->config.routed_only;
  state.addresses_done = [&lookup, routed_only, done = std::move(done)](DnsAddresses found) {
    if (routed_only) keep_routed(found);
    lookup.state_.reset();
    done(std::move(found));
  };
  const bool absolute = host.ends_with('.');
  DnsAddresses hosts = impl_->channel.in_hosts(host.substr(0, host.size() - (absolute ? 1 : 0)));
  state.final = hosts.v4 || hosts.v6;
  state.results = {std::move(hosts.v4), std::move(hosts.v6)};
  if (!state.final && is_localhost(host)) {
    state.final = true;
    state.results = {loopback(Family::kV4), loopback(Family::kV6)};
  }
  if (state.final) return impl_->is_ready(lookup.state_);
  state.candidates = impl_->channel.search(host);
  impl_->ask(lookup.state_);
}

void DnsResolver::find_services(DnsLookup& lookup, const std::string& name,
                                std::function<void(DnsResult)> done) {
  lookup.cancel();
  lookup.state_ = std::make_shared<DnsLookup::State>();
  lookup.state_->types = {DnsType::kSrv};
  lookup.state_->services_done = [&lookup, done = std::move(done)](DnsResult found) {
    lookup.state_.reset();
    done(std::move(found));
  };
  lookup.state_->candidates = impl_->channel.search(name);
  impl_->ask(lookup.state_);
}

const DnsConfig& DnsResolver::config() const noexcept {
  return impl_->config;
}
Loop& DnsResolver::loop() const noexcept {
  return impl_->loop;
}
std::uint64_t DnsResolver::restarts() const noexcept {
  return impl_->restarts;
}

}  // namespace weir::inline v0::io
