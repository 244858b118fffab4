#include "weir/experimental/io/signal.h"

#include <uv.h>

#include "loop_impl.h"

namespace weir::inline v0::io {

struct SignalWatcher::Impl {
  uv_signal_t handle{};
  Callback<int> raised;
};

SignalWatcher::SignalWatcher() = default;

SignalWatcher::~SignalWatcher() {
  close();
}

bool SignalWatcher::start(Loop& loop, int signal_number, Callback<int> raised) {
  auto impl = std::make_unique<Impl>();
  impl->raised = raised;
  if (uv_signal_init(&loop.impl().uv, &impl->handle) != 0) return false;
  impl->handle.data = impl.get();
  const auto on_signal = [](uv_signal_t* handle, int number) {
    static_cast<Impl*>(handle->data)->raised(number);
  };
  impl_ = std::move(impl);
  if (uv_signal_start(&impl_->handle, on_signal, signal_number) == 0) return true;
  close();
  return false;
}

void SignalWatcher::close() noexcept {
  if (impl_ == nullptr) return;
  // libuv uses the handle until its close callback.
  Impl* impl = impl_.release();
  uv_close(reinterpret_cast<uv_handle_t*>(&impl->handle),
           [](uv_handle_t* handle) { delete static_cast<Impl*>(handle->data); });
}

}  // namespace weir::inline v0::io
