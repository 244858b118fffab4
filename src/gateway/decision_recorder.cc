#include "decision_recorder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

#include "weir/experimental/config/print.h"

#include "core.h"
#include "local_answer.h"

namespace weir::inline v0::gateway {
namespace {

/// A tag is never 0, which means "none".
template <class Tag>
Tag tag_from(std::uint64_t hash) noexcept {
  return static_cast<Tag>(hash | 1U);
}

/// A keyed hash of an id, of which 32 bits are kept: so few that no hash keeps others from finding
/// two ids with one tag, and it takes half of the time of SipHash. What leaves the process in a
/// file is hashed once more, by SipHash with a key of that file (policy::with_tags).
std::uint64_t folded_hash(const SipKey& key, std::string_view text) noexcept {
  __extension__ using Product = unsigned __int128;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Product product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  };
  std::uint64_t state = key.k0 ^ text.size();
  std::array<std::uint64_t, 2> words{};
  for (; text.size() >= sizeof(words); text.remove_prefix(sizeof(words))) {
    std::memcpy(words.data(), text.data(), sizeof(words));
    state = fold(state ^ words[0], key.k1 ^ words[1]);
  }
  if (!text.empty()) {
    words = {};
    std::memcpy(words.data(), text.data(), text.size());
    state = fold(state ^ words[0], key.k1 ^ words[1]);
  }
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  return fold(state ^ key.k1, kOdd);
}

constexpr int kTagBase = 16;

/// What tag_name() was given.
std::optional<std::uint32_t> tag_named(std::string_view name) noexcept {
  if (!name.starts_with('~')) return std::nullopt;
  name.remove_prefix(1);
  std::uint32_t tag = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, tag, kTagBase);
  return error == std::errc() && end == last ? std::optional(tag) : std::nullopt;
}

}  // namespace

DecisionRecorder::DecisionRecorder(std::uint32_t loops, Rng seed, const Start& start)
    : start_(start), key_{.k0 = seed.next_u64(), .k1 = seed.next_u64()} {
  const std::size_t each = kBytes / loops / policy::kDecisionBytes;
  for (std::uint32_t i = 0; i < loops; ++i) {
    rings_.push_back(std::make_unique<control::DecisionRing>(std::max<std::size_t>(1, each)));
  }
}

std::uint32_t DecisionRecorder::tag_of_request(std::string_view id) const noexcept {
  return tag_from<std::uint32_t>(folded_hash(key_, id) >> 32U);
}

// An identity is a hash with a key of this process already.
std::uint32_t DecisionRecorder::actor_tag(const Identity& actor) noexcept {
  return actor.present() ? tag_from<std::uint32_t>(actor.key.high >> 32U) : 0;
}

std::uint16_t DecisionRecorder::peer_tag(const Identity& peer) noexcept {
  return peer.present() ? tag_from<std::uint16_t>(peer.key.high >> 48U) : std::uint16_t{0};
}

std::vector<policy::DecisionWords> DecisionRecorder::all() const {
  std::vector<policy::DecisionWords> words;
  words.reserve(kBytes / policy::kDecisionBytes);
  for (const auto& ring : rings_) static_cast<void>(ring->copy(0, words));
  return words;
}

Duration DecisionRecorder::complete_since() const {
  Duration since{};
  for (const auto& ring : rings_) {
    if (ring->put_count() <= ring->capacity()) continue;  // it overwrote nothing
    std::vector<policy::DecisionWords> words;
    words.reserve(ring->capacity());
    static_cast<void>(ring->copy(0, words));
    Duration oldest = Duration::max();
    for (const policy::DecisionWords& one : words) {
      if (const auto decision = policy::unpack(one))
        oldest = std::min(oldest, decision->ended_at());
    }
    if (oldest != Duration::max()) since = std::max(since, oldest);
  }
  return since;
}

std::optional<policy::RecordedDecision> DecisionRecorder::find(std::string_view id) const {
  const std::uint32_t tag = tag_of_request(id);
  const std::optional<std::uint32_t> named = tag_named(id);
  std::optional<policy::RecordedDecision> newest;
  for (const policy::DecisionWords& words : all()) {
    const auto decision = policy::unpack(words);
    if (!decision || (decision->request != tag && decision->request != named)) continue;
    if (!newest || decision->at >= newest->at) newest = decision;
  }
  return newest;
}

std::vector<policy::RecordedDecision> DecisionRecorder::newest_refusals(
    std::size_t count, std::optional<ScopeId> scope) const {
  const auto later = [](const policy::RecordedDecision& a, const policy::RecordedDecision& b) {
    return a.ended_at() > b.ended_at();
  };
  std::vector<policy::RecordedDecision> newest;
  for (const auto& ring : rings_) {
    std::vector<policy::DecisionWords> words;
    words.reserve(ring->capacity());
    static_cast<void>(ring->copy(0, words));
    std::size_t taken = 0;
    for (auto one = words.rbegin(); one != words.rend() && taken < count; ++one) {
      const auto decision = policy::unpack(*one);
      if (!decision || !decision->refused()) continue;
      if (scope && decision->scope != static_cast<std::uint16_t>(*scope)) continue;
      newest.push_back(*decision);
      ++taken;
    }
  }
  std::sort(newest.begin(), newest.end(), later);
  newest.resize(std::min(newest.size(), count));
  return newest;
}

void DecisionRecorder::copy_new(std::vector<std::uint64_t>& positions,
                                std::vector<policy::DecisionWords>& out,
                                std::uint64_t& lost) const {
  positions.resize(rings_.size());
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    positions[i] = rings_[i]->copy(positions[i], out, &lost);
  }
}

std::uint64_t DecisionRecorder::recorded() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& ring : rings_) sum += ring->put_count();
  return sum;
}

policy::RecordingHeader recording_header(const GatewayCore& core, std::uint64_t capacity) {
  policy::RecordingHeader header;
  header.started_unix_us = core.recorder.started_unix_us();
  header.capacity = capacity;
  for (std::size_t i = 0; i < GatewayReason::kCount; ++i) {
    header.reasons.emplace_back(GatewayReason::at(i).name());
  }
  const std::shared_ptr<const UpstreamSet> upstreams = core.upstreams.in_force();
  for (const auto& one : upstreams->all) {
    header.scopes.push_back({static_cast<std::uint16_t>(one->scope()), one->name()});
  }
  header.config = config::print_admission(core.config_in_force());
  return header;
}

std::string upstream_of(const policy::RecordedDecision& decision, const GatewayCore& core) {
  const std::shared_ptr<const UpstreamSet> upstreams = core.upstreams.in_force();
  for (const auto& one : upstreams->all) {
    if (static_cast<std::uint16_t>(one->scope()) == decision.scope) return one->name();
  }
  return {};
}

std::string tag_name(const policy::RecordedDecision& decision) {
  std::array<char, 16> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), decision.request, kTagBase).ptr;
  return "~" + std::string(text.data(), end);
}

std::string_view reason_of(const policy::RecordedDecision& decision) noexcept {
  return GatewayReason::at(decision.reason).name();
}

}  // namespace weir::inline v0::gateway
