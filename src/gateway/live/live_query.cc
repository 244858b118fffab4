#include "live/live_query.h"

#include <algorithm>
#include <array>

#include "weir/base/number_text.h"

#include "admin_server.h"

namespace weir::inline v0::gateway {
namespace {

template <class Enum, std::size_t N>
std::optional<Enum> named(std::string_view text, const std::array<std::string_view, N>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

template <std::size_t N>
std::string one_of(std::string_view parameter, const std::array<std::string_view, N>& names) {
  std::string text = std::string(parameter) + ": one of";
  for (const std::string_view name : names) text += " " + std::string(name);
  return text;
}

/// Why a value cannot be used; empty if it can.
std::string take(LiveQuery& into, std::string_view name, const std::string& value) {
  if (name == "view") {
    const auto view = named<LiveView>(value, kLiveViewNames);
    if (!view) return one_of(name, kLiveViewNames);
    into.view = *view;
  } else if (name == "sort") {
    const auto sort = named<ReplicaSort>(value, kReplicaSortNames);
    if (!sort) return one_of(name, kReplicaSortNames);
    into.sort = *sort;
  } else if (name == "upstream") {
    into.upstream = value;
  } else if (name == "filter") {
    if (value.size() > LiveQuery::kFilterMax) return "filter: at most 100 bytes";
    into.filter = value;
  } else if (name == "bad") {
    if (value != "0" && value != "1") return "bad: 0 or 1";
    into.bad = value == "1";
  } else if (name == "from") {
    const auto from = parse_number<std::uint32_t>(value);
    if (!from) return "from: a number, 0 or more";
    into.from = *from;
  } else if (name == "rows") {
    const auto rows = parse_number<std::size_t>(value);
    if (!rows || *rows == 0 || *rows > LiveQuery::kRowsMax) return "rows: 1 to 100";
    into.rows = *rows;
  } else {
    return std::string(name) + ": not one of view upstream sort filter bad from rows";
  }
  return {};
}

}  // namespace

Result<LiveQuery, std::string> read_live_query(std::string_view query,
                                               std::string_view last_event_id) {
  LiveQuery read;
  read.last_id = parse_number<std::uint64_t>(last_event_id);  // not ours: from the start
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) continue;
    const std::string_view name = pair.substr(0, pair.find('='));
    if (std::string error = take(read, name, query_value(pair, name)); !error.empty()) {
      return unexpected(std::move(error));
    }
  }
  return read;
}

}  // namespace weir::inline v0::gateway
