#pragma once

#include <string>

#include "node_options.h"
#include "peers.h"
#include "placement.h"
#include "value_key.h"
#include "writer_thread.h"

namespace valuestore {

/// Copies from the other nodes what this one owns: leaves by MigrateTransfer, recipes by
/// SyncRecipes. For a node that has lost its disk; one that misses nothing writes the same again.
///
/// Both are of class low: a busy node refuses them, then this waits and asks again. Blocks until
/// all is on the disk; what went wrong, or empty.
[[nodiscard]] std::string rebuild(const NodeOptions& options, Peers& peers, WriterThread& writer);

/// Puts a record that cannot be read here into the own store again: fetched from an owner other
/// than `not_from`; starts to do so and returns.
void fetch_again(const ValueKey& key, std::size_t not_from, const NodeOptions& options,
                 const Placement& placement, Peers& peers, WriterThread& writer);

}  // namespace valuestore
