#include <array>
#include <unordered_map>
#include <utility>

#include "weir/base/number_text.h"

#include "scenario_reader.h"

namespace weir::inline v0::sim {
namespace {

void read_empirical(NodeReader& reader, Distribution& out) {
  if (const ConfigNode* values = reader.raw("values")) {
    for (const ConfigNode& item : values->items) {
      const auto value = duration_of(item);
      if (!value) return reader.fault("values", item.printed(), "a list of durations");
      out.values.push_back(*value);
    }
    if (out.values.empty()) reader.fault("values", "empty", "at least one duration");
    return;
  }
  constexpr std::array<std::pair<std::string_view, double>, 6> kPoints = {
      {{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}}};
  for (const auto& [key, share] : kPoints) {
    Duration value{};
    reader.duration(key, value);
    if (!reader.has(key)) continue;
    if (!out.values.empty() && value < out.values.back()) {
      reader.fault(key, "smaller than the one before", "ascending from min to max");
    }
    out.values.push_back(value);
    out.shares.push_back(share);
  }
  if (out.shares.size() < 2 || out.shares.front() != 0 || out.shares.back() != 1) {
    reader.fault("min", "incomplete", "values = [...], or min, max and any of p50, p90, p99, p999");
  }
}

void read_distribution_table(NodeReader& reader, Distribution& out) {
  constexpr std::array<std::string_view, 7> kKinds = {
      "constant", "uniform", "exponential", "lognormal", "bimodal", "pareto", "empirical"};
  reader.require("kind",
                 "one of constant, uniform, exponential, lognormal, bimodal, pareto, "
                 "empirical");
  if (!reader.choice("kind", out.kind, kKinds)) return reader.skip_rest();
  reader.table("stragglers", [&out](NodeReader& r) {
    r.require("share", "0 to 1");
    r.number("share", out.straggler_share, 0.0, 1.0);
    r.require("factor", "0.01 to 10000");
    r.number("factor", out.straggler_factor, 0.01, 10000.0);
  });
  const auto need = [&reader](std::string_view key, Duration& value) {
    reader.duration(key, value);
    reader.require(key, "a duration such as \"10ms\"");
  };
  switch (out.kind) {
    case DistributionKind::kConstant:
      return need("value", out.a);
    case DistributionKind::kUniform:
      need("min", out.a);
      need("max", out.b);
      if (out.b < out.a) reader.fault("max", "below min", "at least min");
      return;
    case DistributionKind::kExponential:
      return need("mean", out.a);
    case DistributionKind::kLognormal:
      need("median", out.a);
      out.shape = 0.5;
      return reader.number("sigma", out.shape, 0.0, 5.0);
    case DistributionKind::kBimodal:
      need("fast", out.a);
      need("slow", out.b);
      reader.require("slow_share", "0 to 1");
      return reader.number("slow_share", out.share, 0.0, 1.0);
    case DistributionKind::kPareto:
      need("min", out.a);
      need("max", out.b);
      out.shape = 1.5;
      return reader.number("alpha", out.shape, 0.1, 20.0);
    case DistributionKind::kEmpirical:
      return read_empirical(reader, out);
  }
}

// One comma-separated field; advances past it.
std::string_view next_field(std::string_view& line) {
  const std::size_t comma = line.find(',');
  std::string_view field = line.substr(0, comma);
  line = comma == std::string_view::npos ? std::string_view{} : line.substr(comma + 1);
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\r')) field.remove_suffix(1);
  return field;
}

using ActorNumbers = std::unordered_map<std::string_view, std::uint32_t>;

// time (seconds), class, actor, bytes, cost; the last four are optional. Returns what is allowed
// where the row is wrong, or nothing.
std::string_view parse_row(std::string_view line, ActorNumbers& actors, Duration not_before,
                           TraceRow& row) {
  const double seconds = parse_number<double>(next_field(line)).value_or(-1);
  if (!(seconds >= 0 && seconds <= 1e9)) {
    return "a time in seconds first: time,class,actor,bytes,cost";
  }
  row.at = Duration(static_cast<std::int64_t>(seconds * 1e9));
  if (row.at < not_before) return "times that ascend";
  if (const std::string_view name = next_field(line); !name.empty()) {
    const auto priority = priority_named(name);
    if (!priority) return "as class critical, high, normal, low or nothing";
    row.priority = *priority;
  }
  if (const std::string_view actor = next_field(line); !actor.empty()) {
    row.actor = actors.try_emplace(actor, actors.size() + 1).first->second;
  }
  if (const std::string_view text = next_field(line); !text.empty()) {
    const auto bytes = parse_number<std::uint64_t>(text);
    if (!bytes) return "as bytes a whole number";
    row.bytes = *bytes;
  }
  if (const std::string_view text = next_field(line); !text.empty()) {
    row.cost = parse_number<std::uint32_t>(text).value_or(0);
  }
  return row.cost > 0 ? "" : "as cost a whole number, at least 1";
}

void read_trace(NodeReader& reader, const FileSource& files, LoadSpec& out) {
  std::string path;
  reader.text("file", path);
  reader.require("file", "a CSV file: time,class,actor,bytes,cost");
  if (path.empty()) return;
  const auto content = files(path);
  if (!content) return reader.fault("file", path, "a file that can be read");
  ActorNumbers actors;
  std::string_view rest = *content;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.empty() || line.front() == '#' || line.starts_with("time")) continue;
    TraceRow row;
    row.priority = out.priority;
    const Duration last = out.trace.empty() ? Duration(0) : out.trace.back().at;
    const std::string_view allowed = parse_row(line, actors, last, row);
    if (!allowed.empty()) {
      return reader.fault("file", path + ":" + std::to_string(number) + ": " + std::string(line),
                          std::string(allowed));
    }
    out.trace.push_back(row);
  }
  out.actors = static_cast<std::uint32_t>(actors.size());
}

void read_arrivals(NodeReader& reader, const FileSource& files, LoadSpec& out) {
  constexpr std::array<std::string_view, 5> kKinds = {"poisson", "constant", "bursts", "trace",
                                                      "closed"};
  reader.choice("arrivals", out.arrivals, kKinds);
  switch (out.arrivals) {
    case ArrivalKind::kPoisson:
    case ArrivalKind::kConstant: {
      constexpr std::array<std::string_view, 2> kShapes = {"steps", "ramps"};
      reader.require("rate", "calls per second, or a list of { at, rate }");
      read_rate_points(reader, "rate", "rate", out.rate);
      reader.choice("shape", out.shape, kShapes);
      return;
    }
    case ArrivalKind::kBursts:
      reader.require("every", "a duration");
      reader.duration("every", out.burst_every);
      reader.whole("size", out.burst_size, 1U, 10'000'000U);
      reader.require("size", "1 to 10000000");
      reader.duration("spread", out.burst_spread);
      if (reader.has("every") && out.burst_every.count() <= 0) {
        reader.fault("every", "0s", "more than 0s");
      }
      return;
    case ArrivalKind::kTrace:
      return read_trace(reader, files, out);
    case ArrivalKind::kClosed:
      reader.require("clients", "1 to 1000000");
      reader.whole("clients", out.clients, 1U, 1'000'000U);
      return read_distribution(reader, "think", out.think);
  }
}

void read_retry(NodeReader& reader, RetrySpec& out) {
  constexpr std::array<std::string_view, 4> kKinds = {"none", "immediate", "backoff", "hint"};
  reader.choice("kind", out.kind, kKinds);
  reader.whole("attempts", out.attempts_max, 1U, 1000U);
  reader.duration("base", out.base);
  reader.duration("wait_max", out.wait_max);
  reader.number("jitter", out.jitter, 0.0, 1.0);
}

}  // namespace

void read_distribution(NodeReader& reader, std::string_view key, Distribution& out) {
  const ConfigNode* node = reader.raw(key);
  if (node == nullptr) return;
  if (const auto value = duration_of(*node)) {
    out = Distribution::constant(*value);
    return;
  }
  if (node->kind != ConfigNode::Kind::kTable) {
    return reader.fault(key, node->printed(), "a duration (constant), or a table with a kind");
  }
  reader.table(key, [&out](NodeReader& r) { read_distribution_table(r, out); });
}

void read_rate_points(NodeReader& reader, std::string_view key, std::string_view value_key,
                      std::vector<RatePoint>& out) {
  const ConfigNode* node = reader.raw(key);
  if (node == nullptr) return;
  if (node->kind == ConfigNode::Kind::kInteger || node->kind == ConfigNode::Kind::kFloat) {
    if (node->number < 0 || node->number > 1e8) {
      return reader.fault(key, node->printed(), "0 to 100000000");
    }
    out.push_back({Duration(0), node->number});
    return;
  }
  if (node->kind != ConfigNode::Kind::kArray) {
    return reader.fault(key, node->printed(),
                        "a number, or a list of { at, " + std::string(value_key) + " }");
  }
  reader.each(key, [&](NodeReader& r) {
    RatePoint point;
    r.duration("at", point.at);
    r.require("at", "an instant of the run, such as \"20s\"");
    r.require(value_key, "a number");
    r.number(value_key, point.value, 0, 1e8);
    if (!out.empty() && point.at < out.back().at) {
      r.fault("at", "before the one above it", "ascending instants");
    }
    out.push_back(point);
  });
}

void read_link(NodeReader& reader, LinkSpec& out) {
  reader.table("link", [&out](NodeReader& r) {
    read_distribution(r, "delay", out.delay);
    r.number("loss", out.loss, 0.0, 1.0);
    r.duration("retransmit", out.retransmit);
  });
}

void read_caller(NodeReader& reader, CallerSpec& out) {
  read_link(reader, out.link);
  reader.duration("timeout", out.timeout);
  reader.boolean("cancels", out.cancels);
  reader.boolean("sends_deadline", out.sends_deadline);
  reader.table("retry", [&out](NodeReader& r) { read_retry(r, out.retry); });
  const bool lost_for_ever = out.link.loss > 0 && out.link.retransmit.count() == 0;
  if (lost_for_ever && out.timeout.count() == 0) {
    reader.fault("timeout", "missing", "a duration, since a lost message is noticed only by it");
  }
  if (out.sends_deadline && out.timeout.count() == 0) {
    reader.fault("sends_deadline", "true", "only with a timeout");
  }
}

void read_load(NodeReader& reader, const ScenarioNames& names, const FileSource& files,
               LoadSpec& out) {
  reader.text("name", out.name);
  read_reference(reader, "to", names.services, out.to);
  reader.choice("class", out.priority, kPriorityNames);
  reader.duration("starts", out.starts);
  reader.duration("stops", out.stops);
  reader.whole("actors", out.actors, 0U, 1'000'000U);
  reader.whole("peers", out.peers, 0U, 1'000'000U);
  reader.byte_size("bytes", out.bytes);
  reader.whole("cost", out.cost, 1U, kClassUnitsMax);
  reader.whole("width", out.width, 1U, 10000U);
  if (reader.has("time")) read_distribution(reader, "time", out.time.emplace());
  read_arrivals(reader, files, out);
  read_caller(reader, out.caller);
  if (!reader.has("sender")) return;
  read_reference(reader, "sender", names.senders, out.sender.emplace());
  reader.duration("expires", out.expires);
  if (out.caller.retry.kind != RetryKind::kNone) {
    reader.fault("retry", "beside sender", "none for messages of a sender");
  }
}

}  // namespace weir::inline v0::sim
