// A gRPC client that does what the words on its standard input say, one a line, and answers each
// with a line of key=value. peer_client TARGET [CA_FILE]. peer_client.py knows the same words.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/grpc/health.grpc.pb.h"
#include "tests/grpc/peers.grpc.pb.h"

namespace {

using peers::Piece;
using Clock = std::chrono::steady_clock;

constexpr int kMessageBytesMax = 64 << 20;
constexpr const char* kRetryPolicy = R"({"methodConfig": [{
  "name": [{"service": "peers.Peer"}],
  "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
                  "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]})";

struct Client {
  std::unique_ptr<peers::Peer::Stub> peer;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

/// One call's context, with a deadline.
struct Context : grpc::ClientContext {
  explicit Context(std::chrono::milliseconds within = std::chrono::seconds(60)) {
    set_deadline(std::chrono::system_clock::now() + within);
  }
};

Piece piece(std::string data) {
  Piece made;
  made.set_data(std::move(data));
  return made;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    out += kDigits[value >> 4U];
    out += kDigits[value & 15U];
  }
  return out;
}

template <typename T>
void say(std::string_view key, const T& value) {
  std::cout << key << '=' << value << ' ';
}

void say_status(const grpc::Status& status) {
  say("code", int{status.error_code()});
}

std::int64_t milliseconds_since(Clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
}

/// Values of `name` in `fields`, joined by commas, in hexadecimal.
std::string values(const std::multimap<grpc::string_ref, grpc::string_ref>& fields,
                   const char* name) {
  std::string out;
  const auto [first, last] = fields.equal_range(name);
  for (auto at = first; at != last; ++at) {
    out += (out.empty() ? "" : ",") + hex({at->second.data(), at->second.size()});
  }
  return out;
}

void unary(Client& client) {
  Context context;
  context.AddMetadata("key", "a");
  context.AddMetadata("key", "b");
  Piece answer;
  say_status(client.peer->Echo(&context, piece("hello"), &answer));
  say("answer", answer.data());
  say("keys", values(context.GetServerTrailingMetadata(), "key"));
  say("blob", values(context.GetServerTrailingMetadata(), "blob-bin"));
}

void split(Client& client) {
  Context context;
  const auto reader = client.peer->Split(&context, piece("abcdefgh"));
  std::string text;
  for (Piece answer; reader->Read(&answer);) text += answer.data();
  say_status(reader->Finish());
  say("answer", text);
}

void join(Client& client) {
  Context context;
  Piece answer;
  const auto writer = client.peer->Join(&context, &answer);
  for (const char* part : {"one", "", "two", "three"}) writer->Write(piece(part));
  writer->WritesDone();
  say_status(writer->Finish());
  say("answer", answer.data());
}

/// Each piece is sent when the answer to the one before is here.
void chat(Client& client) {
  Context context;
  const auto both = client.peer->Chat(&context);
  std::string text;
  for (const char* part : {"ab", "cd", "ef"}) {
    both->Write(piece(part));
    Piece answer;
    if (both->Read(&answer)) text += answer.data();
  }
  both->WritesDone();
  say_status(both->Finish());
  say("answer", text);
}

void deadline(Client& client) {
  Context context(std::chrono::milliseconds(400));
  const auto began = Clock::now();
  Piece answer;
  say_status(client.peer->Sleep(&context, Piece(), &answer));
  say("ms", milliseconds_since(began));
}

void cancel(Client& client) {
  Context context;
  const auto reader = client.peer->Hold(&context, piece("held"));
  Piece answer;
  say("first", reader->Read(&answer) ? answer.data() : "");
  context.TryCancel();
  say_status(reader->Finish());
}

void say_failure(const grpc::Status& status, const Context& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  say("codes", int{status.error_code()});
  say("messages", hex(status.error_message()));
  say("details", hex(status.error_details()));
  say("why", values(trailers, "why") + "," + values(trailers, "why-bin"));
}

peers::Failure failure(int code) {
  peers::Failure wanted;
  wanted.set_code(code);
  wanted.set_message("as asked: 100 % \xe2\x82\xac");
  wanted.set_details(std::string("\x08\x05\x00\xff", 4));
  return wanted;
}

/// Every code, before an answer (trailers only) and after one. Keys repeat.
void errors(Client& client) {
  for (int code = 1; code <= 16; ++code) {
    Context early;
    Piece answer;
    say_failure(client.peer->Fail(&early, failure(code), &answer), early);
    Context late;
    const auto reader = client.peer->FailLate(&late, failure(code));
    while (reader->Read(&answer)) {
    }
    say_failure(reader->Finish(), late);
  }
}

void large(Client& client) {
  std::string data(16U << 20U, '\0');
  std::uint32_t state = 1;
  for (char& byte : data) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  Context context;
  Piece answer;
  say_status(client.peer->Echo(&context, piece(data), &answer));
  say("same", answer.data() == data);
}

void retry(Client& client) {
  Context context;
  const auto began = Clock::now();
  Piece answer;
  say_status(client.peer->Echo(&context, piece("x"), &answer));
  say("ms", milliseconds_since(began));
}

/// A thousand conversations, all of them open before the first one goes on.
void thousand(Client& client) {
  constexpr std::size_t kCount = 1000;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<Piece, Piece>>> all;
  std::size_t good = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    contexts.push_back(std::make_unique<Context>());
    all.push_back(client.peer->Chat(contexts.back().get()));
    all.back()->Write(piece(std::to_string(1000 + i)));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    std::string wanted = std::to_string(1000 + i);
    std::reverse(wanted.begin(), wanted.end());
    Piece answer;
    if (all[i]->Read(&answer) && answer.data() == wanted) ++good;
  }
  say("open", good);
  good = 0;
  for (const auto& one : all) {
    Piece answer;
    one->Write(piece("end"));
    one->WritesDone();
    if (one->Read(&answer) && answer.data() == "dne" && one->Finish().ok()) ++good;
  }
  say("good", good);
}

int health_of(Client& client, const std::string& service) {
  Context context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = client.health->Check(&context, request, &response);
  return status.ok() ? int{response.status()} : -int{status.error_code()};
}

void set_serving(Client& client, bool serving) {
  Context context;
  peers::Serving wanted;
  wanted.set_serving(serving);
  Piece answer;
  client.peer->SetServing(&context, wanted, &answer);
}

void health(Client& client) {
  say("check", health_of(client, ""));
  say("unknown", health_of(client, "no.such.Service"));
  Context context;
  const auto watch = client.health->Watch(&context, grpc::health::v1::HealthCheckRequest());
  grpc::health::v1::HealthCheckResponse response;
  say("watched", watch->Read(&response) ? int{response.status()} : -1);
  set_serving(client, false);
  say("watched_then", watch->Read(&response) ? int{response.status()} : -1);
  say("check_then", health_of(client, ""));
  set_serving(client, true);
  context.TryCancel();
  say_status(watch->Finish());
}

Client connected(const std::string& target, const char* ca_file) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (ca_file != nullptr) {
    std::ifstream file(ca_file);
    grpc::SslCredentialsOptions options;
    options.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
    credentials = grpc::SslCredentials(options);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetServiceConfigJSON(kRetryPolicy);
  const auto channel = grpc::CreateCustomChannel(target, credentials, arguments);
  return {peers::Peer::NewStub(channel), grpc::health::v1::Health::NewStub(channel)};
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(Client&)> words = {
      {"unary", unary},   {"split", split},   {"join", join},        {"chat", chat},
      {"errors", errors}, {"cancel", cancel}, {"large", large},      {"deadline", deadline},
      {"health", health}, {"retry", retry},   {"thousand", thousand}};
  if (argc < 2) return 2;
  Client client = connected(argv[1], argc > 2 ? argv[2] : nullptr);
  for (std::string word; std::getline(std::cin, word);) {
    const auto found = words.find(word);
    if (found == words.end()) return 2;
    found->second(client);
    std::cout << std::endl;
  }
}
