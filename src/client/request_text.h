#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "weir/experimental/client/client_config.h"
#include "weir/experimental/client/client_error.h"
#include "weir/experimental/client/client_message.h"

#include "upstream/request_head.h"

namespace weir::inline v0::inline client {

/// Why a request cannot be sent at all; nullopt: it can.
///
/// Thread-safety: a function.
[[nodiscard]] std::optional<ClientErrorKind> objection_to(const ClientRequest& request,
                                                          const ClientConfig& config) noexcept;

/// The room that write_head() needs beside request_head_max.
[[nodiscard]] std::size_t head_room(std::string_view authority) noexcept;

/// Writes the head of a request without objection; `out` has request_head_max + head_room().
[[nodiscard]] upstream::RequestHead write_head(std::span<char> out, const ClientRequest& request,
                                               std::string_view authority) noexcept;

}  // namespace weir::inline v0::inline client
