#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/enum_names.h"
#include "weir/base/time.h"

namespace weir::inline v0::inline policy {

/// Whether the endpoint has acted on a request, as far as the protocol tells.
enum class Processed : std::uint8_t {
  kNo,     // certain: REFUSED_STREAM, GOAWAY with a last id below the stream, nothing was written
  kMaybe,  // bytes were written and the protocol says nothing; GOAWAY with a last id equal to it
  kYes,    // a response byte arrived
};

/// How an attempt failed.
enum class AttemptFailure : std::uint8_t {
  kConnectFailed,    // no connection: refused, unreachable, timed out, TLS handshake failed
  kRefusedStream,    // RST_STREAM with REFUSED_STREAM
  kConnectionLost,   // closed, reset or GOAWAY before the response was complete
  kStreamReset,      // RST_STREAM with any other code
  kEnhanceYourCalm,  // RST_STREAM or GOAWAY: the endpoint finds that we ask too much
  kHttp11Required,   // the endpoint wants this request in HTTP/1.1
  kTimeout,          // a timeout of the attempt, not the deadline of the call
  kSilent,           // the endpoint is suspect or hung (silence.h), the attempt is given up
  kBadResponse,      // an answer that is not valid HTTP
  kStatus,  // a complete answer that says "try later": 429, 502, 503, 504, gRPC UNAVAILABLE
};
WEIR_ENUM_NAMES(AttemptFailure, "connect_failed", "refused_stream", "connection_lost",
                "stream_reset", "enhance_your_calm", "http11_required", "timeout", "silent",
                "bad_response", "status")
inline constexpr std::size_t kAttemptFailureCount = kAttemptFailureNames.size();

/// What the endpoint said about another attempt: Retry-After, or grpc-retry-pushback-ms.
struct Pushback {
  bool stop = false;  // no other attempt (a negative or malformed grpc-retry-pushback-ms)
  Duration wait{};    // no other attempt before this time has passed
};

/// What is known about a failed attempt. The codec and the pool fill it.
struct FailedAttempt {
  AttemptFailure failure = AttemptFailure::kConnectFailed;
  Processed processed = Processed::kMaybe;
  bool written = false;  // at least one byte of the request was given to the transport
  bool reused = false;   // on a connection that had served a request before
  std::optional<Pushback> pushback{};
};

/// What is known about the request.
struct ResendFacts {
  bool idempotent = false;  // by its method (safe methods are idempotent), or its route says so
  bool body_kept = false;   // every byte received of the body is still held; true without a body
  bool upgrade = false;     // asks for a protocol switch
  bool answered = false;    // a response byte, or a 1xx, went downstream
};

/// Where the call stands.
struct CallProgress {
  std::uint32_t attempts = 1;  // made by this call, the failed one included
  std::uint32_t caller_attempt =
      1;  // the caller's x-weir-attempt; 1: it sends this for the first time
  std::uint32_t refused_streams = 0;  // attempts of this call that ended with kRefusedStream, this
                                      // one included
  std::uint32_t stale_connections = 0;  // attempts of this call lost on a reused connection before
                                        // a response byte, this one included
  std::optional<Duration> deadline_left{};  // nullopt: no deadline
};

struct SendAgainRules {
  std::uint32_t attempts_max = 3;
  Duration pushback_wait_max = std::chrono::seconds(1);  // a longer wait is left to the client
};

enum class SendAgain : std::uint8_t {
  kNo,
  kTransparent,  // costs no budget: the endpoint has certainly not worked on it
  kFromBudget,   // only if the redundancy budget has a token
};

/// Why a request may or may not be sent again; a label of the retry metrics.
enum class SendAgainReason : std::uint8_t {
  // sent again
  kNotSent,          // nothing reached the endpoint
  kNotProcessed,     // the endpoint said so
  kStaleConnection,  // idempotent, and the kept connection had been closed by the endpoint
  kIdempotent,       // may have been processed, which does no harm
  // not sent again
  kAnswerStarted,   // a response byte went downstream
  kDeadline,        // no time is left, or not enough for the pushback
  kAttemptsUsed,    // attempts_max
  kBodyGone,        // the body is not kept completely
  kNotIdempotent,   // may have been processed
  kUpgrade,         // a protocol switch may have begun
  kCallerRetries,   // the caller sends it again itself: x-weir-attempt above 1
  kRefusedAgain,    // a second endpoint refused the stream as well
  kCalmDown,        // ENHANCE_YOUR_CALM
  kHttp11Required,  // the same request over HTTP/2 would fail again
  kPushback,        // the endpoint asked for no other attempt, or for a long wait
};
WEIR_ENUM_NAMES(SendAgainReason, "not_sent", "not_processed", "stale_connection", "idempotent",
                "answer_started", "deadline", "attempts_used", "body_gone", "not_idempotent",
                "upgrade", "caller_retries", "refused_again", "calm_down", "http11_required",
                "pushback")
inline constexpr std::size_t kSendAgainReasonCount = kSendAgainReasonNames.size();

struct SendAgainDecision {
  SendAgain verdict = SendAgain::kNo;
  SendAgainReason reason = SendAgainReason::kNotIdempotent;
  bool same_endpoint = false;  // the endpoint that failed is as good as another; otherwise another
                               // one must be used while one is available
  Duration wait{};             // not before this has passed (pushback)
};

/// May this request be sent again? The only place that says so: retries, hedges that failed and the
/// simulator all ask here.
///
/// The checks, in this order:
///   answered                                     -> no, kAnswerStarted
///   deadline_left <= 0, or <= pushback wait      -> no, kDeadline
///   attempts >= attempts_max                     -> no, kAttemptsUsed
///   body not kept                                -> no, kBodyGone
///   pushback stop, or wait > pushback_wait_max   -> no, kPushback
///   ENHANCE_YOUR_CALM / HTTP_1_1_REQUIRED        -> no, kCalmDown / kHttp11Required
///   nothing written                              -> transparent, kNotSent
///   processed = no: first refused stream         -> transparent, kNotProcessed
///   processed = no: second refused stream        -> no, kRefusedAgain
///   upgrade                                      -> no, kUpgrade
///   not idempotent                               -> no, kNotIdempotent
///   lost on a reused connection, first time      -> transparent, kStaleConnection, same endpoint
///   caller_attempt > 1                           -> no, kCallerRetries
///   otherwise                                    -> from budget, kIdempotent
///
/// A caller that retries by itself still gets the transparent ones: they add no work to any
/// endpoint, and the caller cannot see them.
///
/// Promises: total and pure. Never anything but kNo after a response byte went downstream, or with
/// a lost body. A request that may have been processed is sent again only if it is idempotent.
/// At most attempts_max attempts, whatever happens.
/// Thread-safety: pure. Cost: O(1).
[[nodiscard]] SendAgainDecision may_send_again(const FailedAttempt& failed,
                                               const ResendFacts& request, const CallProgress& call,
                                               const SendAgainRules& rules) noexcept;

}  // namespace weir::inline v0::inline policy
