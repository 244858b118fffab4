#include "node_reader.h"

#include <algorithm>
#include <utility>

#include "weir/base/byte_size.h"
#include "weir/base/config_check.h"
#include "weir/base/duration_text.h"

#include "config/nearest.h"
#include "config/option_codec.h"

namespace weir::inline v0::sim {
namespace {

constexpr Duration kDurationMax = std::chrono::hours(24 * 365 * 100);  // sums of two still fit

// All allowed names, and the nearest of them if there is one.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view near = config::nearest(word, names);
  const std::string all = config::one_of(names);
  return near.empty() ? all : all + "; did you mean " + std::string(near) + "?";
}

bool is_number(const ConfigNode& node) noexcept {
  return node.kind == ConfigNode::Kind::kInteger || node.kind == ConfigNode::Kind::kFloat;
}

}  // namespace

std::optional<Duration> duration_of(const ConfigNode& node) noexcept {
  if (node.kind != ConfigNode::Kind::kString) return std::nullopt;
  const auto parsed = parse_duration(node.text);
  return parsed ? std::optional<Duration>(parsed.value()) : std::nullopt;
}

NodeReader::NodeReader(const ConfigNode& table, std::string path, std::string file,
                       ConfigErrors& errors)
    : table_(table), path_(std::move(path)), file_(std::move(file)), errors_(errors) {}

std::string NodeReader::full(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  if (key.empty()) return path_;
  return path_ + "." + std::string(key);
}

const ConfigNode* NodeReader::raw(std::string_view key) {
  known_.emplace_back(key);
  return table_.find(key);
}

void NodeReader::fault(std::string_view key, std::string value, std::string allowed) {
  const ConfigNode* node = table_.find(key);
  const int line = node != nullptr && node->line > 0 ? node->line : table_.line;
  const bool overridden = node != nullptr ? node->line == 0 : table_.line == 0;
  errors_.push_back({full(key), std::move(value), std::move(allowed), overridden ? "--set" : file_,
                     overridden ? 0 : line});
}

void NodeReader::text(std::string_view key, std::string& out) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  if (node->kind != ConfigNode::Kind::kString) return fault(key, node->printed(), "a string");
  out = node->text;
}

void NodeReader::boolean(std::string_view key, bool& out) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  if (node->kind != ConfigNode::Kind::kBoolean) return fault(key, node->printed(), "true or false");
  out = node->boolean;
}

void NodeReader::number(std::string_view key, double& out, double low, double high) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  ConfigErrors found;
  check_range(found, key, is_number(*node) ? node->number : low - 1, low, high);
  if (!found.empty()) return fault(key, node->printed(), found.front().allowed);
  out = node->number;
}

void NodeReader::whole(std::string_view key, std::uint64_t& out, std::uint64_t low,
                       std::uint64_t high) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  const bool is_whole = node->kind == ConfigNode::Kind::kInteger && node->integer >= 0;
  const auto value = static_cast<std::uint64_t>(is_whole ? node->integer : 0);
  if (!is_whole || value < low || value > high) {
    return fault(key, node->printed(),
                 "a whole number, " + std::to_string(low) + " to " + std::to_string(high));
  }
  out = value;
}

void NodeReader::whole(std::string_view key, std::uint32_t& out, std::uint32_t low,
                       std::uint32_t high) {
  std::uint64_t wide = out;
  whole(key, wide, std::uint64_t{low}, std::uint64_t{high});
  out = static_cast<std::uint32_t>(wide);
}

void NodeReader::duration(std::string_view key, Duration& out) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  const auto value = duration_of(*node);
  if (!value || *value > kDurationMax) {
    return fault(key, node->printed(),
                 std::string(kDurationSyntax) + ", in quotes, at most a hundred years");
  }
  out = *value;
}

void NodeReader::byte_size(std::string_view key, std::uint64_t& out) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  if (node->kind == ConfigNode::Kind::kInteger && node->integer >= 0) {
    out = static_cast<std::uint64_t>(node->integer);
    return;
  }
  const auto value = parse_byte_size(node->text);
  if (!value) return fault(key, node->printed(), std::string(kByteSizeSyntax));
  out = value.value().bytes();
}

bool NodeReader::choice(std::string_view key, std::size_t& out,
                        std::span<const std::string_view> names) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return true;
  const auto found = std::find(names.begin(), names.end(), node->text);
  if (node->kind != ConfigNode::Kind::kString || found == names.end()) {
    fault(key, node->printed(), did_you_mean(node->text, names));
    return false;
  }
  out = static_cast<std::size_t>(found - names.begin());
  return true;
}

void NodeReader::table(std::string_view key, const std::function<void(NodeReader&)>& body) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  if (node->kind != ConfigNode::Kind::kTable) return fault(key, node->printed(), "a table");
  NodeReader inner(*node, full(key), file_, errors_);
  body(inner);
  inner.done();
}

void NodeReader::each(std::string_view key, const std::function<void(NodeReader&)>& body) {
  const ConfigNode* node = raw(key);
  if (node == nullptr) return;
  if (node->kind != ConfigNode::Kind::kArray)
    return fault(key, node->printed(), "a list of tables");
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const ConfigNode& item = node->items[i];
    if (item.kind != ConfigNode::Kind::kTable) {
      fault(key, item.printed(), "a list of tables");
      continue;
    }
    const ConfigNode* name = item.find("name");
    const std::string member =
        name != nullptr && !name->text.empty() ? name->text : std::to_string(i);
    NodeReader inner(item, full(key) + "." + member, file_, errors_);
    body(inner);
    inner.done();
  }
}

void NodeReader::done() {
  for (const auto& [key, node] : table_.fields) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::vector<std::string_view> names(known_.begin(), known_.end());
    fault(key, "unknown key", did_you_mean(key, names));
  }
}

}  // namespace weir::inline v0::sim
