#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/result.h"

namespace valuestore {

/// What a node is told on its command line.
struct NodeOptions {
  std::string name;
  std::vector<std::string> names;      // of all nodes
  std::vector<std::string> addresses;  // in the order of the names
  std::string data;                    // folder
  std::size_t cache_mb = 16;
  std::uint64_t hints_max = 100000;
  std::size_t workers = 32;  // requests of clients worked on at once: so many reads and writes each
  std::size_t readers = 8;   // reads of the store at once
  std::uint32_t read_ms = 0;            // each takes at least that long: a slow disk, for trials
  std::uint32_t max_concurrent = 1024;  // admission
  std::uint32_t initial_limit = 128;
  bool admission = true;
  bool hedging = true;
  bool first_owner_only = false;  // a read goes to its first owner; to compare with
  bool rebuild = false;           // copy from the others what this node owns, before it serves

  /// The index of this node's name.
  std::size_t self = 0;

  /// The options, or what is wrong with them and what is allowed.
  [[nodiscard]] static weir::Result<NodeOptions, std::string> parse(
      const std::vector<std::string>& arguments);
};

}  // namespace valuestore
