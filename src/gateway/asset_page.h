#pragma once

#include <optional>

#include "admin_request.h"

namespace weir::inline v0::gateway {

/// The file of the web dashboard that a request is for: /dashboard/<file>, and index.html for `/`
/// if the client prefers HTML. nullopt: the request is for something else, or for a file that does
/// not exist.
///
/// A client that has the file gets 304; who accepts gzip gets it compressed.
/// Thread-safety: pure. Cost: no copy of the file.
[[nodiscard]] std::optional<AdminPage> asset_page(const AdminRequest& request);

}  // namespace weir::inline v0::gateway
