#pragma once

#include <cstdint>

namespace weir::inline v0::grpc {

/// What a completion queue gives back: which event of whom.
struct HedgedTag {
  enum class Kind : std::uint8_t {
    kHeaders,  // an attempt: its headers were sent
    kRequest,  // its message was sent
    kMessage,  // a response message, or none
    kStatus,   // its status
    kState,    // the state of a replica's connection has changed, or it is time to look
    kTimer,    // of the channel
  };
  Kind kind = Kind::kTimer;
  void* owner = nullptr;
};

/// One completion.
struct HedgedEvent {
  HedgedTag* tag = nullptr;
  bool ok = false;
};

}  // namespace weir::inline v0::grpc
