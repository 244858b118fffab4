#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/siphash.h"

#include "policy/recorded_decision.h"

namespace weir::inline v0::inline policy {

/// What stands before the decisions of a recording. Only words of the configuration, none of a
/// request.
struct RecordingHeader {
  struct Scope {
    std::uint16_t id = 0;
    std::string name;
    bool operator==(const Scope&) const = default;
  };
  std::int64_t started_unix_us = 0;  // the instant that RecordedDecision::at counts from
  std::uint64_t capacity = 0;        // records that the file has places for
  std::vector<std::string> reasons;  // by RecordedDecision::reason; the first is "admitted"
  std::vector<Scope> scopes;         // the upstreams
  std::string config;                // what admission was configured as, TOML

  bool operator==(const RecordingHeader&) const = default;
};

/// A recording that was read. Decisions are in the order of `at`.
struct Recording {
  RecordingHeader header;
  std::vector<RecordedDecision> decisions;
  std::uint64_t torn = 0;  // records that were not written whole
  bool cut = false;        // the file ends before its last place
};

// The file: a header of 64 bytes (magic "WEIRDEC1", sizes, start, capacity, checksum of the header
// and its texts), the texts, zeros up to a multiple of 64; then records in any order, as
// DecisionWords. All numbers are little-endian.
inline constexpr std::size_t kRecordingHeaderMax = std::size_t{1} << 20U;

/// The bytes of a header. Its texts are cut so that it is at most kRecordingHeaderMax.
[[nodiscard]] std::string encode_header(const RecordingHeader& header);
void append_decision(std::string& out, const DecisionWords& words);
[[nodiscard]] DecisionWords words_at(std::span<const std::byte> record) noexcept;

/// Reads a recording. Any bytes give a result or a sentence about what is wrong with them. Memory:
/// twice the bytes.
[[nodiscard]] Result<Recording, std::string> read_recording(std::span<const std::byte> bytes);

/// The decision with other tags for request, actor and peer, which depend on the key: so the tags
/// of two files with different keys cannot be compared.
[[nodiscard]] RecordedDecision with_tags(RecordedDecision decision, SipKey key) noexcept;

}  // namespace weir::inline v0::inline policy
