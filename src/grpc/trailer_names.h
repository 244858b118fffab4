#pragma once

namespace weir::inline v0::grpc {

// Of gRPC: a client whose retry policy lists the status waits as long, exactly.
inline constexpr char kPushbackTrailer[] = "grpc-retry-pushback-ms";
// The same for clients that read trailers themselves.
inline constexpr char kRetryAfterTrailer[] = "grpc-retry-after-ms";
inline constexpr char kReasonTrailer[] = "x-weir-reason";

}  // namespace weir::inline v0::grpc
