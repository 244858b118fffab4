#pragma once

#include <memory>

#include "http/h2/session_base.h"

namespace weir::inline v0::http::h2 {

/// Destroys a session; its memory still belongs to its owner.
struct DestroyInPlace {
  void operator()(SessionBase* session) const noexcept { session->~SessionBase(); }
};

}  // namespace weir::inline v0::http::h2
