// A gRPC server that a test asks for every kind of call, and that remembers what it saw.
// peer_server [CERTIFICATE KEY]: prints the port, and with a certificate the port with TLS.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include "tests/grpc/peers.grpc.pb.h"

namespace {

constexpr int kMessageBytesMax = 64 << 20;
constexpr auto kLongestSleep = std::chrono::seconds(20);

std::int64_t milliseconds_left(const grpc::ServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return -1;
  return std::chrono::duration_cast<std::chrono::milliseconds>(deadline -
                                                               std::chrono::system_clock::now())
      .count();
}

class Peer final : public peers::Peer::Service {
 public:
  void attach(grpc::HealthCheckServiceInterface* health) { health_ = health; }

  grpc::Status Echo(grpc::ServerContext* context, const peers::Piece* piece,
                    peers::Piece* answer) override {
    peers::Call call = begun("Echo", *context);
    for (const std::string& key : call.keys()) context->AddTrailingMetadata("key", key);
    context->AddTrailingMetadata("blob-bin", std::string("\0\xff", 2));
    answer->set_data(piece->data());
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status Split(grpc::ServerContext* context, const peers::Piece* piece,
                     grpc::ServerWriter<peers::Piece>* answers) override {
    peers::Call call = begun("Split", *context);
    for (const char byte : piece->data()) {
      peers::Piece one;
      one.set_data(std::string(1, byte));
      answers->Write(one);
    }
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status Join(grpc::ServerContext* context, grpc::ServerReader<peers::Piece>* pieces,
                    peers::Piece* answer) override {
    peers::Call call = begun("Join", *context);
    peers::Piece piece;
    while (pieces->Read(&piece)) answer->mutable_data()->append(piece.data());
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status Chat(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<peers::Piece, peers::Piece>* both) override {
    peers::Call call = begun("Chat", *context);
    peers::Piece piece;
    while (both->Read(&piece)) {
      peers::Piece answer;
      answer.set_data(std::string(piece.data().rbegin(), piece.data().rend()));
      both->Write(answer);
    }
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status Fail(grpc::ServerContext* context, const peers::Failure* failure,
                    peers::Piece*) override {
    peers::Call call = begun("Fail", *context);
    return ended(std::move(call), *context, failed(*context, *failure));
  }

  grpc::Status FailLate(grpc::ServerContext* context, const peers::Failure* failure,
                        grpc::ServerWriter<peers::Piece>* answers) override {
    peers::Call call = begun("FailLate", *context);
    answers->Write(peers::Piece());
    return ended(std::move(call), *context, failed(*context, *failure));
  }

  grpc::Status Sleep(grpc::ServerContext* context, const peers::Piece* piece,
                     peers::Piece* answer) override {
    peers::Call call = begun("Sleep", *context);
    sleep(*context);
    answer->set_data(piece->data());
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status Hold(grpc::ServerContext* context, const peers::Piece* piece,
                    grpc::ServerWriter<peers::Piece>* answers) override {
    peers::Call call = begun("Hold", *context);
    answers->Write(*piece);
    sleep(*context);
    return ended(std::move(call), *context, grpc::Status::OK);
  }

  grpc::Status SetServing(grpc::ServerContext*, const peers::Serving* wanted,
                          peers::Piece*) override {
    health_->SetServingStatus(wanted->serving());
    return grpc::Status::OK;
  }

  grpc::Status Tell(grpc::ServerContext*, const peers::Piece*, peers::Journal* journal) override {
    const std::scoped_lock lock(mutex_);
    journal->Swap(&journal_);
    journal_.Clear();
    return grpc::Status::OK;
  }

 private:
  static peers::Call begun(const char* method, const grpc::ServerContext& context) {
    peers::Call call;
    call.set_method(method);
    call.set_left_ms(milliseconds_left(context));
    const auto [first, last] = context.client_metadata().equal_range("key");
    for (auto at = first; at != last; ++at) {
      call.add_keys(std::string(at->second.data(), at->second.size()));
    }
    return call;
  }

  grpc::Status ended(peers::Call call, const grpc::ServerContext& context, grpc::Status status) {
    call.set_cancelled(context.IsCancelled());
    const std::scoped_lock lock(mutex_);
    *journal_.add_calls() = std::move(call);
    return status;
  }

  static grpc::Status failed(grpc::ServerContext& context, const peers::Failure& failure) {
    context.AddTrailingMetadata("why", "as asked");
    context.AddTrailingMetadata("why-bin", std::string("\0\x01\xfe", 3));
    return {static_cast<grpc::StatusCode>(failure.code()), failure.message(), failure.details()};
  }

  static void sleep(const grpc::ServerContext& context) {
    const auto end = std::chrono::steady_clock::now() + kLongestSleep;
    while (!context.IsCancelled() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::mutex mutex_;
  peers::Journal journal_;
  grpc::HealthCheckServiceInterface* health_ = nullptr;
};

std::string contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  grpc::EnableDefaultHealthCheckService(true);
  Peer peer;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.RegisterService(&peer);
  int port = 0;
  int tls_port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  if (argc == 3) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({contents(argv[2]), contents(argv[1])});
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &tls_port);
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  peer.attach(server->GetHealthCheckService());
  std::printf("%d %d\n", port, tls_port);
  std::fflush(stdout);
  server->Wait();
}
