#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/experimental/io/local_peer.h"

namespace weir::inline v0::gateway {

/// How a request reached the admin endpoint.
struct AdminPeer {
  bool unix_socket = false;                // otherwise TCP
  std::optional<io::LocalPeer> process{};  // at the other end of a Unix socket; of POST only
};

/// One request to the admin endpoint. A field that the client did not send is empty. The views are
/// valid until the page is made.
struct AdminRequest {
  std::string_view method{};
  std::string_view path{};   // without query
  std::string_view query{};  // without '?'
  std::string_view host{};   // with its port; empty: no Host
  std::string_view accept{};
  std::string_view accept_encoding{};
  std::string_view if_none_match{};
  std::string_view last_event_id{};
  std::string_view origin{};
  std::string_view content_type{};
  std::string_view authorization{};
  std::string_view sec_fetch_site{};
  std::string_view body{};  // of POST, at most kAdminBodyMax
  AdminPeer peer{};
};

/// A longer request body is refused with 413.
inline constexpr std::size_t kAdminBodyMax = 4096;

/// The messages for one watcher: whoever asked for a page that does not end.
///
/// Thread-safety: the loop of the admin endpoint. Lifetime: ends with the watcher.
class AdminFeed {
 public:
  AdminFeed() = default;
  AdminFeed(const AdminFeed&) = delete;
  AdminFeed& operator=(const AdminFeed&) = delete;
  virtual ~AdminFeed() = default;
  /// The next message, at most admin_message_bytes_max() long. Called when the watcher arrives, and
  /// then once a second.
  [[nodiscard]] virtual std::string next() = 0;
};

struct AdminField {
  std::string_view name;  // in lower case; static
  std::string value;
};

/// One page of the admin endpoint.
struct AdminPage {
  std::uint16_t status = 200;
  std::string_view content_type = "application/json";
  std::string body{};
  std::string_view
      static_body{};  // instead of `body`, if not empty: it lives as long as the process
  std::string_view cache_control = "no-store";
  std::vector<AdminField> fields{};   // besides those that every page has
  bool runs_scripts = false;          // a document that loads scripts and styles from here
  std::unique_ptr<AdminFeed> feed{};  // the page does not end: its messages instead of a body
};

using AdminPages = std::function<AdminPage(const AdminRequest&)>;

/// What changes something, by POST. Its pages check who asks; the Host was checked before.
class AdminActions {
 public:
  /// Whether there is an action at this path.
  [[nodiscard]] virtual bool has(std::string_view path) const = 0;
  /// For any method; only a POST does something.
  [[nodiscard]] virtual AdminPage perform(const AdminRequest& request, TimePoint now) = 0;
  /// How often an action ended in a way, by their names; for the metrics.
  struct Count {
    std::string_view action;
    std::string_view result;
    std::uint64_t count = 0;
  };
  [[nodiscard]] virtual std::vector<Count> counts() const = 0;

 protected:
  ~AdminActions() = default;
};

/// What an admin endpoint does: it answers requests, and works once per interval.
struct AdminWork {
  AdminPages pages;
  std::function<void(TimePoint)> every_second{};  // before the messages for the watchers
  Duration interval = std::chrono::seconds(1);    // tests have shorter ones
  std::function<void(const std::string&)> say{};  // a line for the operator
};

}  // namespace weir::inline v0::gateway
