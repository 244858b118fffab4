#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/experimental/io/address.h"
#include "weir/experimental/io/loop.h"

namespace weir::inline v0::upstream {

/// One endpoint as its source describes it.
struct DiscoveredEndpoint {
  io::SocketName address;
  /// The host name or address that the operator wrote, for TLS (SNI, verification): never a name
  /// that came from DNS, which anybody who forges answers could choose. Of `srv:_http._tcp.api` it
  /// is "api". Empty for Unix sockets.
  std::string host;
  std::uint32_t weight = 1;
  std::string zone;
  bool draining = false;  // no new requests

  bool operator==(const DiscoveredEndpoint&) const = default;
};

class EndpointSource;

/// Receives what sources find, on the loop of the source.
class EndpointSink {
 public:
  /// The complete list of `from`; called when it differs from the last one. A list in another order
  /// is not different: the order is the source's own. May be empty.
  virtual void on_endpoints(const EndpointSource& from, std::vector<DiscoveredEndpoint> all) = 0;
  /// A lookup or a read failed; nothing was removed. Called at the first failure, when its text
  /// changes, and with an empty text when it is over.
  virtual void on_source_error(const EndpointSource& from, const std::string& text) = 0;

 protected:
  ~EndpointSink() = default;
};

/// The state of a source, for /endpoints. Times are of the loop's clock; the zero point is "never".
struct SourceStatus {
  std::string source;         // as configured: "dns:api:8080"
  std::size_t endpoints = 0;  // in the last list
  bool known = false;         // a list was published
  bool cut = false;           // the source has more endpoints than are used
  TimePoint changed{};        // the last time the list changed
  TimePoint succeeded{};      // the last lookup or read that did not fail
  TimePoint failing_since{};
  std::string error;   // empty while it works
  std::string reason;  // of the last decision: "records", "empty_unproven", …
  TimePoint next{};    // the next lookup or read; never for sources that do not change
};

/// A source of endpoints: a list, DNS, a file. (Kubernetes EndpointSlices can be another one.)
///
/// An implementation must promise: it publishes complete lists, without duplicates; an error
/// removes nothing; there are no calls to the sink after stop(), and none from within start() or
/// stop().
/// Thread-safety: its loop's thread. status() too.
/// Lifetime: stopped before its loop and its sink end; stop() is also called by the destructor.
class EndpointSource {
 public:
  EndpointSource() = default;
  EndpointSource(const EndpointSource&) = delete;
  EndpointSource& operator=(const EndpointSource&) = delete;
  virtual ~EndpointSource() = default;

  virtual void start(io::Loop& loop, EndpointSink& sink) = 0;
  virtual void stop() noexcept = 0;
  /// Looks again soon (within a second), for instance because connections were refused.
  virtual void refresh() noexcept {}
  [[nodiscard]] virtual const SourceStatus& status() const noexcept = 0;
};

}  // namespace weir::inline v0::upstream
