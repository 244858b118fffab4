#include "remote_fetch.h"

#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "weir/base/assert.h"

#include "node_service.h"

namespace valuestore {
namespace {

constexpr const char* kFetch = "/valuestore.ValueStore/FetchValue";

}  // namespace

RemoteFetch::RemoteFetch(const NodeOptions& options, std::function<bool()> overloaded)
    : options_(options) {
  weir::grpc::HedgedChannelConfig config;
  for (std::size_t node = 0; node < options.names.size(); ++node) {
    if (node != options.self) config.replicas.push_back({.target = options.addresses[node]});
  }
  config.methods = weir::grpc::hedged_methods(NodeService::methods());
  config.hedge.enabled = options.hedging;
  config.overloaded = std::move(overloaded);
  config.timeout = std::chrono::seconds(1);
  auto channel = weir::grpc::HedgedChannel::create(std::move(config));
  WEIR_ASSERT(channel.has_value());
  channel_ = std::make_unique<weir::grpc::HedgedChannel>(*std::move(channel));
}

grpc::Status RemoteFetch::fetch(const std::vector<std::size_t>& nodes, const ValueKey& key,
                                const Caller& caller, StoredRecord& record) {
  weir::grpc::HedgedCallOptions call;
  call.deadline = caller.deadline;
  call.priority = weir::Priority::kHigh;
  call.metadata.emplace_back("x-weir-peer", options_.name);
  for (const std::size_t node : nodes) {
    call.among.push_back(options_.addresses[node]);
    if (options_.first_owner_only) break;
  }
  FetchValueRequest request;
  request.set_key(std::string(key.view()));
  std::promise<grpc::Status> promise;
  std::future<grpc::Status> end = promise.get_future();
  const auto id = channel_->send<StoredRecord>(
      kFetch, request,
      [&](grpc::Status status, StoredRecord reply) {
        record = std::move(reply);
        promise.set_value(std::move(status));
      },
      call);
  if (!id) return id.error();
  if (!wait_for(end, caller)) channel_->cancel(*id);
  return end.get();  // soon, if it was cancelled
}

}  // namespace valuestore
