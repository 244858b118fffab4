#pragma once

#include <cstdint>
#include <unordered_set>

#include "storage.h"
#include "value_key.h"
#include "writer_thread.h"

namespace valuestore {

using KeySet = std::unordered_set<ValueKey, ValueKeyHash>;

struct Swept {
  std::uint64_t removed = 0;
  std::uint64_t kept = 0;
  bool failed = false;  // the store could not write; sweep again
};

/// The second half of a round of garbage collection on one node. A round has an epoch. First every
/// node starts the epoch and names its roots (a root's inputs, and theirs, are alive as well); when
/// all have answered, every node sweeps: it removes what is not alive and was not put in this epoch
/// or the one before.
///
/// The one before counts because nodes start an epoch one after the other: a put at that moment has
/// the new epoch on one owner and the old one on the other. So a value that nobody needs any more
/// goes in the second round after its last put. A put renews the epoch before it is acknowledged,
/// and the writer applies puts and sweeps in one order, so no acknowledged put is swept.
///
/// Hints and repairs keep the epoch of their source: one that is delivered late can bring a removed
/// value back, but not past the next sweep. A round needs every node, so no hint survives one
/// unseen.
Swept sweep_garbage(const Storage& storage, WriterThread& writer, const KeySet& live,
                    std::uint64_t epoch);

}  // namespace valuestore
