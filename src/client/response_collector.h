#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/experimental/client/client_message.h"

#include "policy/send_again.h"
#include "upstream/response_head.h"

namespace weir::inline v0::inline client {

/// Copies a response as it arrives, up to a bound.
///
/// Promises: holds at most twice `body_max` while the body grows, and once when it is complete.
/// Thread-safety: none; one owner. Cost: one copy of each byte, and one more when it grows.
class ResponseCollector {
 public:
  /// Both: false if the body is, or will be, larger than `body_max`.
  [[nodiscard]] bool take_head(const upstream::ResponseHead& head, std::size_t body_max);
  [[nodiscard]] bool take_body(std::string_view bytes, std::size_t body_max);
  void clear() { *this = {}; }

  /// 503 or 429.
  [[nodiscard]] bool overloaded() const noexcept;
  /// The refusal says that the request was not processed: a Weir's admission has refused it.
  [[nodiscard]] bool unprocessed() const noexcept { return unprocessed_; }
  /// What the answer says about another attempt.
  [[nodiscard]] const std::optional<policy::Pushback>& pushback() const noexcept {
    return pushback_;
  }
  [[nodiscard]] ClientResponse& response() noexcept { return response_; }

 private:
  void grow(std::size_t bytes_needed, std::size_t body_max);

  ClientResponse response_;
  std::optional<policy::Pushback> pushback_;
  bool unprocessed_ = false;
};

}  // namespace weir::inline v0::inline client
