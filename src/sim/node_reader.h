#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/config_error.h"
#include "weir/base/time.h"

#include "config_node.h"

namespace weir::inline v0::sim {

/// Reads the keys of one table into plain variables and collects all faults: a wrong kind, a value
/// out of range, an unknown key. A variable whose key is missing keeps its value.
///
/// Promises: done() reports each key that was never read, with the known keys. All errors contain
/// the file, the line and the whole path of the key.
/// Thread-safety: none. Lifetime: the node must outlive it.
class NodeReader {
 public:
  NodeReader(const ConfigNode& table, std::string path, std::string file, ConfigErrors& errors);

  [[nodiscard]] bool has(std::string_view key) const noexcept {
    return table_.find(key) != nullptr;
  }

  void text(std::string_view key, std::string& out);
  void boolean(std::string_view key, bool& out);
  void number(std::string_view key, double& out, double low, double high);
  void whole(std::string_view key, std::uint64_t& out, std::uint64_t low, std::uint64_t high);
  void whole(std::string_view key, std::uint32_t& out, std::uint32_t low, std::uint32_t high);
  /// "50ms", "1500ms", "2s", "1m"
  void duration(std::string_view key, Duration& out);
  void byte_size(std::string_view key, std::uint64_t& out);
  /// One of `names`; `out` is its index. False if the value is another one.
  bool choice(std::string_view key, std::size_t& out, std::span<const std::string_view> names);
  template <class Enum>
  bool choice(std::string_view key, Enum& out, std::span<const std::string_view> names) {
    auto index = static_cast<std::size_t>(out);
    const bool good = choice(key, index, names);
    out = static_cast<Enum>(index);
    return good;
  }

  /// Reads a nested table, if present, with `body` and checks it for unknown keys.
  void table(std::string_view key, const std::function<void(NodeReader&)>& body);
  /// The same for each table of a list (`[[key]]`).
  void each(std::string_view key, const std::function<void(NodeReader&)>& body);
  /// The raw value, marked as read; nullptr if missing.
  [[nodiscard]] const ConfigNode* raw(std::string_view key);

  /// Reports a fault at a key, or at the table itself if the key is missing.
  void fault(std::string_view key, std::string value, std::string allowed);
  void require(std::string_view key, std::string_view allowed) {
    if (!has(key)) fault(key, "missing", std::string(allowed));
  }
  /// Adds errors that a config struct's validate() found, with file and line.
  void adopt(ConfigErrors errors) {
    for (ConfigError& error : errors) fault(error.key, std::move(error.value), error.allowed);
  }
  /// Accepts every key: the value that decides which keys are allowed is itself wrong.
  void skip_rest() {
    for (const auto& [key, node] : table_.fields) known_.push_back(key);
  }
  void done();

  [[nodiscard]] int line() const noexcept { return table_.line; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  [[nodiscard]] std::string full(std::string_view key) const;

  const ConfigNode& table_;
  std::string path_;
  std::string file_;
  ConfigErrors& errors_;
  std::vector<std::string> known_;
};

/// Reads a duration value of a node; nullopt if it is none.
[[nodiscard]] std::optional<Duration> duration_of(const ConfigNode& node) noexcept;

}  // namespace weir::inline v0::sim
