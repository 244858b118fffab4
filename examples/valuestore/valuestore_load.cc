// Calls nodes of the value store at a fixed rate, however long they take, and says how it went.
//
//   valuestore_load --target 127.0.0.1:7001,… --rate 2000 --seconds 5 [--method get|fetch]
//                   [--timeout-ms 500] [--keys FILE]
//
// Calls go to the targets in turn. FILE has a key per line, in hexadecimal: they are read in turn.
// Prints one line of JSON: calls by outcome, calls answered in time per second, and latencies of
// those in milliseconds.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "weir/base/time.h"
#include "weir/embed/clock.h"

#include "examples/valuestore/valuestore.pb.h"

namespace {

struct LoadOptions {
  std::vector<std::string> targets;
  std::uint32_t rate = 100;
  std::uint32_t seconds = 5;
  std::uint32_t timeout_ms = 500;
  std::string method = "get";
  std::string keys;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool parse(int argc, char** argv, LoadOptions& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    std::uint32_t number = 0;
    const bool is_number =
        std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc{};
    if (name == "--target") {
      options.targets = split(value);
    } else if (name == "--method") {
      options.method = value;
    } else if (name == "--keys") {
      options.keys = value;
    } else if (name == "--rate" && is_number && number > 0) {
      options.rate = number;
    } else if (name == "--seconds" && is_number && number > 0) {
      options.seconds = number;
    } else if (name == "--timeout-ms" && is_number && number > 0) {
      options.timeout_ms = number;
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !options.targets.empty();
}

std::vector<std::string> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string key;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
      unsigned byte = 0;
      std::from_chars(line.data() + i, line.data() + i + 2, byte, 16);
      key += static_cast<char>(byte);
    }
    keys.push_back(key);
  }
  return keys;
}

/// What is sent and what came of it.
class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), keys_(read_keys(options.keys)) {
    for (const std::string& target : options.targets) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
      const auto channel =
          grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
      channel->WaitForConnected(
          gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(5, GPR_TIMESPAN)));
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }

  void run() {
    const std::uint64_t total = std::uint64_t{options_.rate} * options_.seconds;
    const weir::TimePoint begin = weir::embed::now();
    while (sent_ < total || open_ > 0) {
      const weir::TimePoint now = weir::embed::now();
      const double due = weir::to_seconds(now - begin) * options_.rate;
      while (sent_ < total && static_cast<double>(sent_) <= due) send(now);
      collect();
    }
  }

  void print() {
    std::sort(took_.begin(), took_.end());
    const auto at = [&](double share) {
      if (took_.empty()) return 0.0;
      return took_[static_cast<std::size_t>(share * static_cast<double>(took_.size() - 1))];
    };
    std::printf(
        "{\"sent\": %llu, \"ok\": %zu, \"refused\": %llu, \"failed\": %llu, "
        "\"goodput\": %.1f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, \"max\": %.3f}\n",
        number(sent_), took_.size(), number(refused_), number(failed_),
        static_cast<double>(took_.size()) / options_.seconds, at(0.5), at(0.9), at(0.99), at(1.0));
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer reply;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    weir::TimePoint begin;
  };

  static unsigned long long number(std::uint64_t value) { return value; }

  template <class Message>
  static grpc::ByteBuffer bytes_of(const Message& message) {
    const std::string text = message.SerializeAsString();
    const grpc::Slice slice(text);
    return {&slice, 1};
  }

  grpc::ByteBuffer request() const {
    valuestore::GetValueRequest request;  // FetchValueRequest has the same bytes
    if (!keys_.empty()) request.set_key(keys_[sent_ % keys_.size()]);
    return bytes_of(request);
  }

  void send(weir::TimePoint now) {
    const std::string method = options_.method == "fetch" ? "FetchValue" : "GetValue";
    auto* const call = new Call;
    call->begin = now;
    call->context.set_deadline(gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(options_.timeout_ms, GPR_TIMESPAN)));
    call->reader = stubs_[sent_ % stubs_.size()]->PrepareUnaryCall(
        &call->context, "/valuestore.ValueStore/" + method, request(), &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
    ++sent_;
    ++open_;
  }

  /// What has been answered, for at most a millisecond.
  void collect() {
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(500, GPR_TIMESPAN));
    void* tag = nullptr;
    bool ok = false;
    while (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      --open_;
      if (call->status.ok()) {
        took_.push_back(weir::to_millis(weir::embed::now() - call->begin));
      } else if (call->status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        ++refused_;
      } else {
        ++failed_;
      }
    }
  }

  const LoadOptions& options_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
  std::vector<double> took_;  // of calls that were answered, in milliseconds
  std::uint64_t sent_ = 0;
  std::uint64_t open_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  LoadOptions options;
  if (!parse(argc, argv, options)) {
    std::fputs(
        "usage: valuestore_load --target ADDRESS,… [--method get|fetch]\n"
        "         [--rate N] [--seconds N] [--timeout-ms N] [--keys FILE]\n",
        stderr);
    return 2;
  }
  Load load(options);
  load.run();
  load.print();
  return 0;
}
