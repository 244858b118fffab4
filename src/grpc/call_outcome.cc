#include "call_outcome.h"

#include "trailer_names.h"

namespace weir::inline v0::grpc {

Outcome outcome_of(::grpc::StatusCode code, const Trailers& trailers) noexcept {
  switch (code) {
    case ::grpc::StatusCode::OK:
      return Outcome::kOk;
    case ::grpc::StatusCode::CANCELLED:
      return Outcome::kIgnored;
    case ::grpc::StatusCode::UNAVAILABLE:
      return trailers.contains(kReasonTrailer) ? Outcome::kIgnored : Outcome::kOverload;
    case ::grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (trailers.contains(kReasonTrailer)) return Outcome::kIgnored;
      return trailers.contains(kPushbackTrailer) ? Outcome::kOverload : Outcome::kError;
    default:
      return Outcome::kError;
  }
}

}  // namespace weir::inline v0::grpc
