#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/result.h"
#include "weir/experimental/http/h1/message.h"

namespace weir::inline v0::http::h1 {

/// Interprets the fields of a syntactically valid head, for requests and responses. Each function
/// refuses input that two parsers could read differently.

/// Decimal digits, no sign, no blank, no leading zero, below 2^63, where other parsers overflow.
[[nodiscard]] Result<std::uint64_t, ParseError> parse_content_length(
    std::string_view value) noexcept;

/// The framing given by Content-Length and Transfer-Encoding; kNone without either.
[[nodiscard]] Result<BodyFraming, ParseError> framing_of(const HeaderList& headers,
                                                         Version version) noexcept;

/// The options in all Connection lines. Fields that they name are marked hop_by_hop.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
};
[[nodiscard]] Result<ConnectionOptions, ParseError> connection_options(
    HeaderList& headers) noexcept;

/// Whether the connection stays open after the exchange. `close` overrides `keep-alive`.
[[nodiscard]] constexpr bool persists(Version version, ConnectionOptions options) noexcept {
  return !options.close && (version == Version::k11 || options.keep_alive);
}

/// host [":" port]: a name of letters, digits, "-._~", an IPv4 address, or a bracketed IP literal.
struct Authority {
  std::string_view host;
  std::string_view port;  // empty without one
};
[[nodiscard]] Result<Authority, ParseError> parse_authority(std::string_view text) noexcept;

/// Whether `token` (lower case) is an element of the comma-separated list, without parameters.
[[nodiscard]] bool list_has(std::string_view list, std::string_view token) noexcept;

}  // namespace weir::inline v0::http::h1
