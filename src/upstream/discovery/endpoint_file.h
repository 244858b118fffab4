#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"

#include "upstream/discovery/endpoint_source.h"

namespace weir::inline v0::upstream {

/// Reads a file of endpoints: one per line, `address:port [weight=N] [zone=Z] [drain=true|false]`,
/// or `unix:/path …`. What follows a '#' is a comment, empty lines are skipped. A file of comments
/// only is an empty list; a file without any byte is an error, since that is what a reader may see
/// of a file that is being written.
///
/// The error names the line, what is wrong with it and what is allowed; then no part of the file is
/// used.
/// Thread-safety: a function.
[[nodiscard]] Result<std::vector<DiscoveredEndpoint>, std::string> parse_endpoint_file(
    std::string_view text);

inline constexpr std::size_t kFileEndpointsMax = 1024;
inline constexpr std::size_t kEndpointFileBytesMax = 256 * 1024;

}  // namespace weir::inline v0::upstream
