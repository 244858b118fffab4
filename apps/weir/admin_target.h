#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "weir/base/result.h"

#include "admin_client.h"

namespace weir::app {

/// Which gateway a command asks, as its options say it.
struct AdminTarget {
  std::string config_file;
  std::string admin;
  std::string token_file;
};

/// Adds --config, --admin and --token-file.
void add_admin_target(CLI::App& command, AdminTarget& target);

/// The client for it: at --admin, or where the configuration of the gateway says: the socket for
/// actions if there is one, otherwise the admin endpoint, with its token if actions need one. The
/// error is a sentence.
[[nodiscard]] Result<AdminClient, std::string> client_for(const AdminTarget& target);

/// Where a command looks that may act, too.
struct WatchTarget {
  AdminClient view;
  AdminClient act;  // with the token, if there is one
  bool has_token = false;
  bool has_socket = false;  // act asks a Unix socket
};
/// As client_for(), but who may not read the configuration or its token can look all the same: at
/// the usual place, or without the token. The error is a sentence.
[[nodiscard]] Result<WatchTarget, std::string> watch_target_for(const AdminTarget& target);

/// The address of the dashboard for a browser on this machine, with the token behind it where
/// actions need one. The error is a sentence.
[[nodiscard]] Result<std::string, std::string> dashboard_for(const AdminTarget& target);

}  // namespace weir::app
