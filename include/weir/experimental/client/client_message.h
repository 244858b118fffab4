#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/policy/priority.h"

namespace weir::inline v0::inline client {

struct ClientHeader {
  std::string name;
  std::string value;
};

/// A request of a Client. The client adds Host, Content-Length and what Weir reads (x-weir-…):
/// these are not allowed among `headers`.
///
/// Thread-safety: a value.
struct ClientRequest {
  std::string method = "GET";
  std::string path = "/";  // with the query
  std::vector<ClientHeader> headers{};
  std::string body{};
  Duration timeout{};    // zero: ClientConfig::timeout
  TimePoint deadline{};  // of whoever asked for it; zero: none. The earlier one holds
  Priority priority = Priority::kNormal;
  /// It does no harm if it is processed twice. GET, HEAD, OPTIONS, TRACE, PUT and DELETE are so by
  /// their method. Only such a request is sent again after it may have been processed.
  bool idempotent = false;
  /// A GET or HEAD may be sent to a second endpoint if the first is late. Others never are.
  bool hedge = true;
  std::string hash_key{};  // for Balance::kHash: equal keys go to equal endpoints; empty: the path
};

/// The answer to a request: the last one, if it was sent several times.
///
/// An answer that reports overload (503, 429) is a response, too: it comes after the retries.
/// Redirects are not followed. Trailers are not kept.
struct ClientResponse {
  std::uint16_t status = 0;
  std::vector<ClientHeader>
      headers{};  // names as the endpoint wrote them; those of one hop left out
  std::string body{};
  std::string endpoint{};      // that answered: "127.0.0.1:8080"
  std::uint32_t attempts = 1;  // made at endpoints, hedges included
  bool hedged = false;
  Duration retry_after{};  // what an answer that reports overload asks for; zero: nothing

  /// The value of the first header with this name, in any case; empty: there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
};

}  // namespace weir::inline v0::inline client
