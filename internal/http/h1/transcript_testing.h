#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/request_parser.h"
#include "weir/experimental/http/h1/response_parser.h"

/// The codec's results as text, so that two ways to feed the same bytes can be compared.

namespace weir::inline v0::http::h1 {

inline std::string lower_case(std::string_view text) {
  std::string copy(text);
  for (char& c : copy)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return copy;
}

/// One complete message.
struct SeenMessage {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  std::string method;  // requests
  std::string authority;
  std::string path;
  unsigned status = 0;  // responses
  bool http11 = true;
  bool keep_alive = false;
  bool tunnel = false;
  bool complete = false;
  Fields fields;  // names in lower case
  std::string body;
  Fields trailers;
};

/// Acts as a connection: a region that grows by pieces, is parsed, and shrinks by what was
/// consumed. Every call gets the bytes in a new allocation of exactly their size, so that the
/// address sanitizer catches a view kept too long or a read past the end.
class Transcript {
 public:
  explicit Transcript(const HttpLimits& limits)
      : limits_(limits),
        storage_(limits.header_count_max),
        trailer_storage_(limits.trailer_count_max) {}
  virtual ~Transcript() = default;
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  void feed(std::string_view piece) {
    pending_ += piece;
    bool progress = !stopped_;
    while (progress) {
      region_ = std::make_unique<char[]>(pending_.size());
      std::copy(pending_.begin(), pending_.end(), region_.get());
      const std::span<const char> bytes(region_.get(), pending_.size());
      progress = in_body_ ? step_body(bytes) : step_head(bytes);
      if (stopped_) return;
    }
  }

  /// The peer closes its side.
  void close() {
    if (stopped_) return;
    if (in_body_) {
      take(decoder_.finish());
    } else {
      text_ += pending_.empty() ? "closed\n" : "cut short\n";
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] const std::string& left_over() const { return pending_; }
  /// Every message whose head was accepted, including 1xx.
  [[nodiscard]] const std::vector<SeenMessage>& messages() const { return messages_; }
  [[nodiscard]] ParseError error() const { return error_; }
  /// Messages whose last piece has arrived.
  [[nodiscard]] int complete() const {
    return static_cast<int>(std::count_if(messages_.begin(), messages_.end(),
                                          [](const SeenMessage& m) { return m.complete; }));
  }

 protected:
  virtual bool step_head(std::span<const char> bytes) = 0;

  void begin_body(BodyFraming framing) {
    decoder_ = BodyDecoder(framing, limits_);
    in_body_ = true;
  }
  void stop(const std::string& line) {
    text_ += line + "\n";
    stopped_ = true;
  }
  void refuse(ParseError error) {
    error_ = error;
    stop("error " + std::to_string(status_of(error)) + " " + std::string(to_string(error)));
  }
  void list(const HeaderList& fields, SeenMessage::Fields& seen) {
    for (const HeaderView& field : fields) seen.emplace_back(lower_case(field.name), field.value);
    for (const HeaderView& field : fields)
      text_ += "  " + lower_case(field.name) + ": " + std::string(field.value) +
               (field.hop_by_hop ? "  (hop)" : "") + "\n";
  }
  void consume(std::size_t bytes) { pending_.erase(0, bytes); }

  HttpLimits limits_;
  std::vector<HeaderView> storage_;
  std::string text_;
  std::vector<SeenMessage> messages_;

 private:
  bool step_body(std::span<const char> bytes) {
    const BodyStep step = decoder_.next(bytes, trailer_storage_);
    take(step);
    consume(step.consumed);
    return step.event != BodyEvent::kNeedMore;
  }
  void take(const BodyStep& step) {
    if (step.event == BodyEvent::kError) refuse(step.error);
    if (step.event == BodyEvent::kTrailers) {
      write_body();
      text_ += "trailers\n";
      list(decoder_.trailers(), messages_.back().trailers);
    }
    if (step.event != BodyEvent::kData) return;
    messages_.back().body += step.chunk.text();
    if (!step.chunk.last()) return;
    if (messages_.back().trailers.empty()) write_body();
    text_ += "end\n";
    in_body_ = false;
    messages_.back().complete = true;
  }
  /// The ends of pieces depend on the cuts, the content does not.
  void write_body() {
    if (!messages_.back().body.empty()) text_ += "body " + messages_.back().body + "\n";
  }

  std::vector<HeaderView> trailer_storage_;
  std::string pending_;
  std::unique_ptr<char[]> region_;
  BodyDecoder decoder_;
  ParseError error_ = ParseError::kNone;
  bool in_body_ = false;
  bool stopped_ = false;
};

inline std::string framing_text(BodyFraming framing) {
  switch (framing.kind) {
    case BodyKind::kNone:
      return "none";
    case BodyKind::kLength:
      return "length=" + std::to_string(framing.length);
    case BodyKind::kChunked:
      return "chunked";
    case BodyKind::kUntilClose:
      break;
  }
  return "until-close";
}

/// The server's side: pipelined requests, until one is refused or asks for a tunnel.
class RequestTranscript final : public Transcript {
 public:
  explicit RequestTranscript(const HttpLimits& limits = {}) : Transcript(limits) {}

 protected:
  bool step_head(std::span<const char> bytes) override {
    RequestHead head;
    const HeadResult result = parser_.parse_head(bytes, storage_, head);
    if (result.status == ParseStatus::kNeedMore) return false;
    if (result.status == ParseStatus::kError) {
      refuse(result.error);
      return false;
    }
    text_ += "request " + std::string(head.meta.method) + " " + std::string(head.meta.scheme) +
             " " + std::string(head.meta.authority) + " " + std::string(head.meta.path) +
             (head.version == Version::k11 ? " 1.1 " : " 1.0 ") + framing_text(head.body) +
             (head.keep_alive ? " keep" : " close") + (head.expect_continue ? " expect" : "") +
             (head.upgrade ? " upgrade" : "") + (head.te_trailers ? " te" : "") + "\n";
    const bool tunnel = head.upgrade || head.method == Method::kConnect;
    SeenMessage& seen = messages_.emplace_back();
    seen.method = head.meta.method;
    seen.authority = head.meta.authority;
    seen.path = head.meta.path;
    seen.http11 = head.version == Version::k11;
    seen.keep_alive = head.keep_alive;
    seen.tunnel = tunnel;
    list(head.headers, seen.fields);
    begin_body(head.body);
    consume(result.consumed);
    if (tunnel) stop("tunnel");
    return true;
  }

 private:
  RequestParser parser_{limits_};
};

/// The client's side: responses to requests like `context`, until one is refused or a tunnel.
class ResponseTranscript final : public Transcript {
 public:
  explicit ResponseTranscript(ResponseContext context = {}, const HttpLimits& limits = {})
      : Transcript(limits), context_(context) {
    parser_.begin(context_);
  }

 protected:
  bool step_head(std::span<const char> bytes) override {
    ResponseHead head;
    const HeadResult result = parser_.parse_head(bytes, storage_, head);
    if (result.status == ParseStatus::kNeedMore) return false;
    if (result.status == ParseStatus::kError) {
      refuse(result.error);
      return false;
    }
    text_ += "response " + std::to_string(head.status) + " " + std::string(head.reason) +
             (head.version == Version::k11 ? " 1.1 " : " 1.0 ") + framing_text(head.body) +
             (head.keep_alive ? " keep" : " close") + (head.informational ? " interim" : "") +
             (head.tunnel ? " tunnel" : "") + "\n";
    const bool interim = head.informational;
    const bool tunnel = head.tunnel;
    SeenMessage& seen = messages_.emplace_back();
    seen.status = head.status;
    seen.http11 = head.version == Version::k11;
    seen.keep_alive = head.keep_alive;
    seen.tunnel = tunnel;
    list(head.headers, seen.fields);
    if (!interim) begin_body(head.body);
    consume(result.consumed);
    if (tunnel) stop("tunnel");
    if (!interim) parser_.begin(context_);
    return true;
  }

 private:
  ResponseContext context_;
  ResponseParser parser_{limits_};
};

template <class T>
std::string in_one(T&& transcript, std::string_view bytes) {
  transcript.feed(bytes);
  return transcript.text();
}

template <class T>
std::string byte_by_byte(T&& transcript, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) transcript.feed(bytes.substr(i, 1));
  return transcript.text();
}

template <class T>
std::string cut_at(T&& transcript, std::string_view bytes, std::size_t cut) {
  transcript.feed(bytes.substr(0, cut));
  transcript.feed(bytes.substr(cut));
  return transcript.text();
}

}  // namespace weir::inline v0::http::h1
