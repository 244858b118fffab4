#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/base/time.h"

namespace weir::app {

/// How one replica of the demo behaves.
struct ReplicaManner {
  std::string name;
  Duration service_time = std::chrono::milliseconds(20);
  std::uint32_t workers = 4;  // requests served at once; the others are queued
  /// For `slow_for` out of every `slow_every`, each request takes ten times as long; 0: never.
  Duration slow_every{};
  Duration slow_for{};
};

/// A small service inside this process for the demo to protect.
class DemoReplica {
 public:
  explicit DemoReplica(const ReplicaManner& manner);
  DemoReplica(const DemoReplica&) = delete;
  DemoReplica& operator=(const DemoReplica&) = delete;
  ~DemoReplica();

  /// False: no loopback port was free.
  [[nodiscard]] bool start();
  [[nodiscard]] std::string address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::app
