#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/experimental/io/timer.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"

#include "admin_request.h"
#include "admin_watchers.h"

namespace weir::inline v0::gateway {

/// Builds a page when the request is complete and sends it as fast as the client reads; sends
/// watchers a message per second.
///
/// Places for large pages that are not sent yet are bounded, /metrics has its own, and both
/// together with the watchers are fewer than the connections: a client that gets no page is idle
/// and makes room. When the places of its kind or the bytes are used up, the oldest page that has
/// not been read within kReadGrace is cut off; without such a one the new request gets 503. What
/// asks for the health needs no place. A watcher that does not read is cut, so the next one waits
/// for a few seconds at most.
///
/// Thread-safety: the loop's thread, also constructor and destructor.
class AdminHandler final : public Handler {
 public:
  struct Bounds {
    std::uint64_t pages_bytes = 0;    // of all pages that are not sent yet
    std::uint64_t message_bytes = 0;  // of one message for a watcher
  };
  AdminHandler(AdminWork work, const Bounds& bounds, io::Loop& loop);
  ~AdminHandler() override;

  void on_headers(ServerStream& stream, const ServerRequest& request) override;
  void on_body(ServerStream& stream, const http::BodyChunk& chunk) override;
  void on_complete(ServerStream& stream) override;
  void on_writable(ServerStream& stream) override { send(stream); }
  void on_finished(ServerStream& stream) override { drop(stream); }
  void on_abort(ServerStream& stream, CloseReason) override { drop(stream); }

  /// Smaller pages are not refused for their bytes; the places bound their number.
  static constexpr std::size_t kSmallPage = 2048;
  /// Requests whose body is not complete.
  static constexpr std::size_t kBodiesMax = 8;

 private:
  /// What a monitor asks regularly has places of its own, and so have watchers.
  enum class Kind : std::uint8_t { kHealth, kMetrics, kOther, kWatch };
  static constexpr std::array<std::uint32_t, 4> kPlaces = {UINT32_MAX, 6, 12, UINT32_MAX};
  static constexpr Duration kReadGrace = std::chrono::milliseconds(500);

  struct Asked;  // a request that is kept until its body is complete
  struct Reply;

  static Kind kind_of(std::string_view path) noexcept;
  void answer(ServerStream& stream, const AdminRequest& request);
  void answer_with(ServerStream& stream, AdminPage page);
  void watch(Reply& reply, bool head_only);
  void on_second(TimePoint now);
  [[nodiscard]] std::uint32_t& count_of(const Reply& reply) noexcept;
  [[nodiscard]] bool has_place(const Reply& reply);
  [[nodiscard]] bool has_bytes(const Reply& reply);
  bool cut_oldest(const Reply& newcomer, bool same_kind);
  void cut(ServerStream& stream);
  void cut_watcher(const AdminWatcher& watcher);
  static void send(ServerStream& stream);
  static bool begin(Reply& reply);
  void drop(ServerStream& stream);

  const AdminWork work_;
  const Bounds bounds_;
  io::Loop& loop_;
  io::Timer second_;
  TimePoint next_second_{};
  std::uint64_t bytes_ = 0;  // of all pages not sent yet
  std::size_t bodies_ = 0;   // requests whose body is not complete
  bool said_too_long_ = false;
  std::array<std::uint32_t, 4> unsent_of_{};  // by kind
  AdminWatchers watchers_;
  struct Unsent;
  std::unique_ptr<Unsent> unsent_;  // the list of replies, oldest first
};

}  // namespace weir::inline v0::gateway
