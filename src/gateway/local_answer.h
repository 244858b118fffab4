#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/number_text.h"
#include "weir/base/time.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"
#include "weir/policy/reason.h"

#include "upstream/failure.h"

namespace weir::inline v0::gateway {

// The gateway's own reasons to refuse, besides admission: enumerator, then its ReasonFacts.
// clang-format off
#define WEIR_GATEWAY_REFUSALS(X)                                                                  \
  X(kNoRoute, "no_route", 404, 12, false, false, "",                                              \
    "no route serves this host, path and method")                                                 \
  X(kAmbiguousPath, "ambiguous_path", 400, 3, false, false, "",                                   \
    "the path can be read as that of another route: avoid dot segments, //, %2F, ; and backslash")\
  X(kNoActor, "no_actor", 401, 16, false, false, "",                                              \
    "this route wants a known client: an API key, a verified token or a certificate")             \
  X(kTokenRate, "token_rate", 429, 8, true, false, "",                                            \
    "too many new tokens came from this address")                                                 \
  X(kConnect, "connect", 405, 12, false, false, "", "this is no forward proxy")                   \
  X(kBodyTooLarge, "body_too_large", 413, 8, false, false, "",                                    \
    "the request body is larger than this route takes")                                           \
  X(kSlowBody, "slow_body", 408, 8, false, false, "",                                             \
    "the body came too slowly while others waited")                                               \
  X(kHeadTooLarge, "head_too_large", 431, 8, false, false, "", "the request header does not fit") \
  X(kBadGrpcTimeout, "bad_grpc_timeout", 400, 13, false, false, "",                               \
    "grpc-timeout is given once: 1 to 8 digits, then H, M, S, m, u or n")                         \
  X(kGrpcNeedsHttp2, "grpc_needs_http2", 501, 12, false, false, "",                               \
    "this upstream does not speak HTTP/2, which gRPC needs: protocol = http2")                    \
  X(kProtocolNotOffered, "protocol_not_offered", 501, 12, false, false, "",                       \
    "this route does not switch to such a protocol")                                              \
  X(kUpgradeNeedsHttp1, "upgrade_needs_http1", 501, 12, false, false, "",                         \
    "this upstream speaks only HTTP/2, and a WebSocket begins in HTTP/1.1: protocol = auto")      \
  X(kNoTunnel, "no_tunnel", 503, 8, true, true, "", "too many tunnels are open")                  \
  X(kNoPlace, "no_place", 503, 8, true, true, "", "too many requests are under way")
// clang-format on

enum class GatewayRefusal : std::uint8_t {
#define WEIR_X(enumerator, ...) enumerator,
  WEIR_GATEWAY_REFUSALS(WEIR_X)
#undef WEIR_X
};

/// All reasons for which the gateway refuses a request: admission's, then its own.
class GatewayReason {
 public:
  static constexpr std::size_t kOwnCount = 0
// NOLINTNEXTLINE(bugprone-macro-parentheses): a chain of summands
#define WEIR_X(...) +1
      WEIR_GATEWAY_REFUSALS(WEIR_X)
#undef WEIR_X
      ;
  static constexpr std::size_t kCount = kReasonCount + kOwnCount;

  // Both kinds convert to this one.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr GatewayReason(Reason reason) noexcept
      : index_(static_cast<std::uint8_t>(index_of(reason))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr GatewayReason(GatewayRefusal own) noexcept
      : index_(static_cast<std::uint8_t>(kReasonCount + static_cast<std::size_t>(own))) {}
  [[nodiscard]] static constexpr GatewayReason at(std::size_t index) noexcept {
    GatewayReason refusal(Reason::kAdmitted);
    refusal.index_ = static_cast<std::uint8_t>(index);
    return refusal;
  }

  [[nodiscard]] constexpr std::size_t index() const noexcept {
    return index_;
  }
  [[nodiscard]] const ReasonFacts& facts() const noexcept;
  [[nodiscard]] std::string_view name() const noexcept {
    return facts().name;
  }
  bool operator==(const GatewayReason&) const = default;

 private:
  std::uint8_t index_;
};

/// One answer that the gateway itself produces: a refusal, or the failure of an upstream.
struct LocalAnswer {
  std::uint16_t status = 503;
  std::string_view reason;              // x-weir-reason
  std::string_view sentence;            // for people
  std::optional<Duration> retry_after;  // a hint, if a retry makes sense
  std::string_view request_id{};        // empty: not sent
  std::uint8_t grpc = 14;               // the status for a gRPC call
};

[[nodiscard]] LocalAnswer answer_for(GatewayReason refusal,
                                     std::optional<Duration> retry_after) noexcept;
[[nodiscard]] LocalAnswer answer_for(upstream::UpstreamFailure failure) noexcept;

/// A gRPC call: an HTTP/2 request with the content type of gRPC.
[[nodiscard]] bool is_grpc(const ServerRequest& request) noexcept;

/// The form of an answer. kGrpc: status 200 and no body; the fields tell what happened
/// ("Trailers-Only"), since gRPC clients obey a retry hint in no other form.
enum class AnswerForm : std::uint8_t { kText, kJson, kGrpc };
/// That of gRPC for a gRPC call, JSON if Accept names it, otherwise text.
[[nodiscard]] AnswerForm wanted_form(const ServerRequest& request) noexcept;

/// Builds the header fields and the body of a local answer in place.
class LocalAnswerText {
 public:
  LocalAnswerText(const LocalAnswer& answer, AnswerForm form) noexcept;
  LocalAnswerText(const LocalAnswerText&) = delete;
  LocalAnswerText& operator=(const LocalAnswerText&) = delete;

  [[nodiscard]] ResponseHead head() const noexcept {
    return {.status = status_, .fields = {fields_.data(), field_count_}, .content_length = {}};
  }
  [[nodiscard]] std::string_view body() const noexcept { return {body_.data(), body_size_}; }

 private:
  void write_grpc(const LocalAnswer& answer) noexcept;
  void write_body(const LocalAnswer& answer, bool json) noexcept;
  void add_field(std::string_view name, std::string_view value) noexcept;
  void add_body(std::string_view text) noexcept;

  std::array<ResponseField, 9> fields_;
  std::size_t field_count_ = 0;
  std::array<char, 256> body_;
  std::size_t body_size_ = 0;
  NumberText retry_ms_{0};
  NumberText retry_s_{0};
  NumberText grpc_{0};
  std::uint16_t status_;
};

/// Sends an answer that the gateway itself produces. It never fails: if no write buffer is free, it
/// sends the server's fixed 503, which needs none, and returns false: the reason was not sent.
bool send_local(ServerStream& stream, const LocalAnswer& answer, AnswerForm form) noexcept;

}  // namespace weir::inline v0::gateway
