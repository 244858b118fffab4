#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/control/outgoing_queues.h"

#include "placement.h"
#include "record.h"
#include "storage.h"
#include "writer_thread.h"

namespace valuestore {

/// A record on its way to another node: a hint, or a repair of what that node did not have.
struct Parcel : weir::OutgoingItem {
  std::size_t node = 0;
  ValueKey key{};
  Record record{};
  bool root = false;
  bool is_hint = false;
};

/// How a parcel leaves: starts to send and returns. `done` is called once, on any thread, with true
/// after the other node has the record on its disk.
using SendParcel = std::function<void(const Parcel&, std::function<void(bool)> done)>;

struct HintDeliveryConfig {
  std::uint32_t window = 8;                // parcels on their way to one node
  std::uint32_t parcels_per_second = 500;  // to one node
  std::size_t queued_max = 64;             // hints in the queue of one node
  std::size_t repairs_max = 256;           // that wait to be queued; more are left to the next read
  weir::Duration pause = std::chrono::milliseconds(500);   // after a failure, for that node
  weir::Duration rescan = std::chrono::milliseconds(100);  // between looks for hints of one node
  std::size_t healed_max = 8;  // unreadable hints that are fetched from elsewhere, per look
};

/// Fetches a record that cannot be read here from another node than this one, and puts it into the
/// store; starts to do so and returns.
using FetchAgain = std::function<void(const ValueKey&, std::size_t not_from)>;

/// Delivers hints to their owners, and repairs, through Weir's outgoing queues: one queue and one
/// window per node, class low, paced; so a node that comes back is not run over, and a slow one
/// delays no other.
///
/// A hint stays on the disk until its owner has confirmed that its copy is on its own disk; the
/// queue holds only copies of hints, so nothing is lost with it. A hint whose value cannot be read
/// stays, and its value is fetched from the other owner.
///
/// Promises: at most `window` parcels are on their way to a node, and at most parcels_per_second
/// are sent to it in a second. Thread-safety: any thread. Lifetime: the destructor waits until
/// every parcel on its way is done.
class HintDelivery {
 public:
  using IsUp = std::function<bool(std::size_t node)>;

  HintDelivery(const HintDeliveryConfig& config, const Placement& placement, std::size_t self,
               Storage& storage, WriterThread& writer, SendParcel send, IsUp is_up,
               FetchAgain fetch_again);
  ~HintDelivery();
  HintDelivery(const HintDelivery&) = delete;
  HintDelivery& operator=(const HintDelivery&) = delete;

  /// Sends the record to a node that should have it, soon, if there is room.
  void repair(std::size_t node, const ValueKey& key, const Record& record, bool root);

  struct Counts {
    std::uint64_t delivered = 0;
    std::uint64_t repaired = 0;
    std::uint64_t failed = 0;
    std::uint64_t unreadable = 0;  // now: hints whose value could not be read at the last look
    std::uint64_t looks = 0;       // for hints in the store
  };
  [[nodiscard]] Counts counts() const;

 private:
  /// What one node has coming.
  struct Route {
    std::optional<ValueKey> after;  // the last hint that was queued
    std::size_t open = 0;           // hints queued or on their way
    weir::TimePoint quiet_until{};
    weir::TimePoint look_at{};
    std::size_t unreadable = 0;  // since the first hint of this look
    std::size_t reported = 0;    // of the look before
    double tokens = 1;           // parcels that may leave now
    weir::TimePoint filled_at{};
  };

  void run();
  void step(weir::TimePoint now);
  void queue_repairs(weir::TimePoint now);
  void queue_hints(std::size_t node, weir::TimePoint now);
  void begin_again(Route& route, weir::TimePoint now);
  void note_unreadable(std::size_t node, const ValueKey& key);
  bool queue(std::unique_ptr<Parcel> parcel, weir::TimePoint now);
  void send(std::size_t node, weir::TimePoint now);
  void finish_done(weir::TimePoint now);
  void finish(Parcel& parcel, bool delivered, weir::TimePoint now);
  void done(Parcel* parcel, bool delivered);
  void forget(Parcel& parcel);

  const HintDeliveryConfig config_;
  const Placement& placement_;
  const std::size_t self_;
  Storage& storage_;
  WriterThread& writer_;
  const SendParcel send_;
  const IsUp is_up_;
  const FetchAgain fetch_again_;

  // The delivery thread's own.
  std::unique_ptr<weir::OutgoingDirectory> directory_;
  std::unique_ptr<weir::OutgoingQueues> queues_;
  std::vector<Route> routes_;
  std::vector<std::unique_ptr<Parcel>> parcels_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Parcel>> repairs_;
  std::vector<std::pair<Parcel*, bool>> done_;
  Counts counts_;
  std::size_t on_the_way_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace valuestore
