// Two handlers, two ways to treat a body:
//
//   POST /json     needs the whole body: collects it in an arena, parses it, returns it minified.
//                  No arena free: 503, nothing is buffered, the connection stays usable.
//   POST /upload   needs no memory of its own: writes each piece to a file while the view is valid.
//                  Works when every arena is taken.
//
//   json_and_upload --arenas N --file PATH      prints "port N" when it is ready
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "weir/experimental/io/loop.h"
#include "weir/experimental/io/signal.h"
#include "weir/experimental/server/body_buffer.h"
#include "weir/experimental/server/server.h"

namespace {

using weir::BodyBuffer;
using weir::ResponseHead;
using weir::ServerRequest;
using weir::ServerStream;
using weir::http::BodyChunk;

void answer(ServerStream& stream, std::uint16_t status, std::string_view text) {
  static constexpr weir::ResponseField kPlain[] = {{"content-type", "text/plain"}};
  const ResponseHead head{.status = status, .fields = kPlain, .content_length = {}};
  if (stream.send_response(head, text) != weir::SendResult::kSent) stream.send_503();
}

/// A JSON object or array without its blanks; empty if its brackets or quotes do not match. A real
/// service would parse it; this example only shows that it needs the whole text.
std::string minified(std::string_view text) {
  std::string out;
  std::string open;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) continue;
    out += c;
    if (quoted && c == '\\' && i + 1 < text.size()) out += text[++i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{' || c == '[') open += c;
    if (c != '}' && c != ']') continue;
    if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return {};
    open.pop_back();
  }
  return quoted || !open.empty() || (!out.starts_with('{') && !out.starts_with('[')) ? "" : out;
}

/// Buffers: an arena is taken after the head and returned when the stream ends.
class JsonHandler final : public weir::Handler {
 public:
  void on_headers(ServerStream& stream, const ServerRequest&) override {
    const weir::ArenaAnswer got = stream.acquire_arena();
    if (got.status != weir::ArenaStatus::kGranted) return stream.send_503();
    stream.make_state<BodyBuffer>() = BodyBuffer(*got.arena);
  }
  void on_body(ServerStream& stream, const weir::http::BodyChunk& chunk) override {
    if (stream.response_started()) return;  // refused above; the rest is discarded
    if (!stream.state<BodyBuffer>().append(chunk)) answer(stream, 413, "larger than an arena\n");
  }
  void on_complete(ServerStream& stream) override {
    if (stream.response_started()) return;
    const std::string_view body = stream.state<BodyBuffer>().get();
    const std::string json = minified(body);
    if (json.empty()) return answer(stream, 400, "not JSON\n");
    answer(stream, 200, json + "\n");
  }
};

/// Streams: each view is written before the callback returns. One file per stream.
class UploadHandler final : public weir::Handler {
 public:
  explicit UploadHandler(std::string path) : path_(std::move(path)) {}

  struct State {
    std::FILE* file;
    std::uint64_t bytes;
  };
  void on_headers(ServerStream& stream, const ServerRequest&) override {
    State& state = stream.make_state<State>();
    state.file = std::fopen((path_ + "." + std::to_string(stream.id())).c_str(), "wb");
    if (state.file == nullptr) answer(stream, 500, "cannot write there\n");
  }
  void on_body(ServerStream& stream, const weir::http::BodyChunk& chunk) override {
    State& state = stream.state<State>();
    if (state.file == nullptr) return;
    state.bytes += std::fwrite(chunk.data, 1, chunk.len, state.file);
  }
  void on_complete(ServerStream& stream) override {
    const State& state = stream.state<State>();
    if (state.file == nullptr) return;
    const std::uint64_t bytes = state.bytes;
    // Closed before the answer: a client that reads "Uploaded" may open the complete file.
    if (!close(stream)) return answer(stream, 507, "not all of it could be written\n");
    answer(stream, 200, "Uploaded " + std::to_string(bytes) + " bytes\n");
  }
  void on_finished(ServerStream& stream) override { static_cast<void>(close(stream)); }
  void on_abort(ServerStream& stream, weir::CloseReason) override {
    static_cast<void>(close(stream));
  }

 private:
  /// Whether everything that arrived is in the file.
  static bool close(ServerStream& stream) {
    State& state = stream.state<State>();
    if (state.file == nullptr) return false;
    const bool complete = std::ferror(state.file) == 0;
    const bool closed = std::fclose(state.file) == 0;
    state.file = nullptr;
    return complete && closed;
  }
  std::string path_;
};

class Router final : public weir::Handler {
 public:
  explicit Router(const std::string& path) : upload_(path) {}
  void on_headers(ServerStream& stream, const ServerRequest& request) override {
    Handler* next = request.meta.path == "/json"     ? static_cast<Handler*>(&json_)
                    : request.meta.path == "/upload" ? static_cast<Handler*>(&upload_)
                                                     : nullptr;
    if (next == nullptr) return answer(stream, 404, "POST /json or /upload\n");
    stream.set_handler(*next);
    next->on_headers(stream, request);
  }

 private:
  JsonHandler json_;
  UploadHandler upload_;
};

struct Stopper {
  void on_signal(int) { loop->stop(); }
  weir::io::Loop* loop;
};

}  // namespace

int main(int argc, char** argv) {
  weir::ServerConfig config;
  config.listen = {"127.0.0.1:0"};
  config.loops = 1;
  config.reserved_arenas = 0;
  std::string path = "upload";
  for (int i = 1; i < argc; i += 2) {
    const std::string_view key = argv[i];
    if (i + 1 == argc || (key != "--arenas" && key != "--file")) {
      const bool asked = key == "--help";
      std::fputs("json_and_upload [--arenas N] [--file PATH]\n", asked ? stdout : stderr);
      return asked ? 0 : 2;
    }
    if (key == "--arenas") {
      const std::string_view text = argv[i + 1];
      std::from_chars(text.data(), text.data() + text.size(), config.arena_pool_size);
    } else {
      path = argv[i + 1];
    }
  }
  weir::Server server(config,
                      [&](const weir::HandlerPlace&) { return std::make_unique<Router>(path); });
  if (!config.validate().empty() || !server.start()) return 2;
  weir::io::Loop loop;
  Stopper stopper{&loop};
  weir::io::SignalWatcher terminate;
  const auto stop = weir::io::Callback<int>::to<&Stopper::on_signal>(stopper);
  if (!terminate.start(loop, SIGTERM, stop)) return 1;
  // Printed last: the reader of the port may send SIGTERM at once.
  std::printf("port %u\n", server.port());
  std::fflush(stdout);
  loop.run();
  terminate.close();
  loop.run_once();
  server.drain(std::chrono::seconds(5));
  server.stop();
  return 0;
}
