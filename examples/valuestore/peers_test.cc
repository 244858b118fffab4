#include "peers.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace valuestore {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience(20);
constexpr std::size_t kInLane = 24;

/// A node that takes copies and keeps them until it is told to answer.
class OtherNode final : public ValueStore::CallbackService {
 public:
  OtherNode() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~OtherNode() override { server_->Shutdown(); }

  grpc::ServerUnaryReactor* ReplicateLeaf(grpc::CallbackServerContext* context,
                                          const ReplicateRequest*, ReplicateReply*) override {
    const std::lock_guard lock(mutex_);
    ++arrived_;
    auto* const reactor = context->DefaultReactor();
    if (answers_) {
      reactor->Finish(grpc::Status::OK);
    } else {
      kept_.push_back(reactor);
    }
    changed_.notify_all();
    return reactor;
  }
  grpc::ServerUnaryReactor* HealthCheck(grpc::CallbackServerContext* context,
                                        const HealthCheckRequest*,
                                        HealthCheckReply* reply) override {
    reply->set_state(draining_ ? HealthCheckReply::DRAINING : HealthCheckReply::SERVING);
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  /// Answers what it has kept, and from now on at once.
  void answer() {
    std::vector<grpc::ServerUnaryReactor*> kept;
    {
      const std::lock_guard lock(mutex_);
      answers_ = true;
      kept.swap(kept_);
    }
    for (auto* const reactor : kept) reactor->Finish(grpc::Status::OK);
  }
  void drain() { draining_ = true; }
  bool wait_until_arrived(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return arrived_ >= count; });
  }
  std::size_t arrived() {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  bool answers_ = false;
  std::atomic<bool> draining_{false};
  std::vector<grpc::ServerUnaryReactor*> kept_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class PeersTest : public ::testing::Test {
 protected:
  using Copy = std::future<grpc::Status>;

  Copy copy(weir::Duration at_most, std::size_t bytes = 10) {
    ReplicateRequest request;
    const Record record{RecordKind::kLeaf, 1, std::string(bytes, 'x')};
    *request.mutable_record() = to_message(record.key(), record, false);
    auto end = std::make_shared<std::promise<grpc::Status>>();
    Copy copy = end->get_future();
    peers.replicate(1, request, weir::Priority::kNormal, at_most,
                    [end](const grpc::Status& status) { end->set_value(status); });
    return copy;
  }
  /// Copies that have all places of the lane and are not answered.
  std::vector<Copy> fill_lane() {
    std::vector<Copy> open;
    for (std::size_t i = 0; i < kInLane; ++i) open.push_back(copy(hours(1)));
    EXPECT_TRUE(node.wait_until_arrived(kInLane));
    return open;
  }
  static grpc::StatusCode end_of(Copy& copy) {
    if (copy.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "it does not end";
      return grpc::StatusCode::UNKNOWN;
    }
    return copy.get().error_code();
  }
  void expect_ok(std::vector<Copy>& copies) {
    for (Copy& each : copies) EXPECT_EQ(end_of(each), grpc::StatusCode::OK);
  }

  OtherNode node;
  NodeOptions options =
      *NodeOptions::parse({"--name", "a", "--nodes", "a=x,b=" + node.address(), "--data", "x"});
  Peers peers{options};
};

TEST_F(PeersTest, CopiesBeyondTheirPartWaitAndLeaveInTurn) {
  auto open = fill_lane();
  std::vector<Copy> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(copy(hours(1)));
  EXPECT_EQ(node.arrived(), kInLane);
  node.answer();
  expect_ok(open);
  expect_ok(waiting);
  EXPECT_EQ(node.arrived(), kInLane + 100);
}

TEST_F(PeersTest, TheTimeOfACopyRunsWhileItWaits) {
  auto open = fill_lane();
  std::vector<Copy> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(copy(milliseconds(1)));
  for (Copy& each : waiting) EXPECT_EQ(end_of(each), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(node.arrived(), kInLane) << "the places are still taken";
  node.answer();
  expect_ok(open);
}

TEST_F(PeersTest, CopiesThatWaitFailWhenTheirNodeTakesNoWrites) {
  auto open = fill_lane();
  std::vector<Copy> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(copy(hours(1)));
  node.drain();
  for (Copy& each : waiting) EXPECT_EQ(end_of(each), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(node.arrived(), kInLane);
  node.answer();
  expect_ok(open);
}

TEST_F(PeersTest, WhatWaitsIsBoundedInBytesToo) {
  auto open = fill_lane();
  std::vector<Copy> waiting;
  for (int i = 0; i < 32; ++i) waiting.push_back(copy(hours(1), 1 << 20));
  Copy beyond = copy(hours(1), 1);
  EXPECT_EQ(end_of(beyond), grpc::StatusCode::UNAVAILABLE);
  node.answer();
  expect_ok(open);
  expect_ok(waiting);
  Copy again = copy(hours(1), 1 << 20);
  EXPECT_EQ(end_of(again), grpc::StatusCode::OK);
}

TEST_F(PeersTest, StopFailsWhatWaitsAndStartsNothing) {
  auto open = fill_lane();
  std::vector<Copy> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(copy(hours(1)));
  std::thread stopper([this] { peers.stop(); });
  for (Copy& each : waiting) EXPECT_EQ(end_of(each), grpc::StatusCode::UNAVAILABLE);
  node.answer();  // each completion finds an empty lane, and a queue that is shut down
  expect_ok(open);
  stopper.join();
  EXPECT_EQ(node.arrived(), kInLane);
  Copy late = copy(hours(1));
  EXPECT_EQ(end_of(late), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace valuestore
