#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <http_parser.h>

#include "weir/base/assert.h"

#include "http/h1/transcript_testing.h"

/// http_parser as a reference: an independent implementation of the same RFCs. Its result has the
/// form of our own transcript; `path` is the raw target.

namespace fuzz {

using weir::http::h1::SeenMessage;

class Judge {
 public:
  explicit Judge(http_parser_type type) {
    http_parser_init(&parser_, type);
    parser_.data = this;
  }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Parses one message, byte by byte, to stop exactly at its end; at the end of `bytes` the peer
  /// closes if `closes`. Returns the bytes consumed.
  std::size_t read_one(std::string_view bytes, bool closes) {
    static const http_parser_settings settings = callbacks();
    std::size_t used = 0;
    while (used < bytes.size() && !message_.complete && error() == HPE_OK) {
      last_byte_ = bytes[used];
      used += http_parser_execute(&parser_, &settings, bytes.data() + used, 1);
    }
    if (closes && !message_.complete && error() == HPE_OK)
      http_parser_execute(&parser_, &settings, nullptr, 0);
    return used;
  }
  [[nodiscard]] http_errno error() const { return static_cast<http_errno>(parser_.http_errno); }
  [[nodiscard]] const SeenMessage& message() const { return message_; }
  /// RFC 9110 allows tabs around a value; http_parser knows only spaces. It refuses a tab after a
  /// Content-Length, and takes a coding with a tab for an unknown one: it refuses such a request
  /// and reads such a response until close.
  [[nodiscard]] bool misread_a_tab() const {
    if (error() == HPE_INVALID_CONTENT_LENGTH && last_byte_ == '\t') return true;
    for (const auto& [name, value] : message_.fields)
      if (name == "transfer-encoding" && value.find('\t') != value.npos) return true;
    return false;
  }
  /// http_parser ignores a connection option beside a tab or behind an empty list element.
  [[nodiscard]] bool may_miss_a_connection_option() const {
    for (const auto& [name, value] : message_.fields) {
      if (name != "connection") continue;
      if (value.find('\t') != value.npos) return true;
      bool empty_element = true;
      for (const char c : value) {
        if (c == ',' && std::exchange(empty_element, true)) return true;
        if (c != ',' && c != ' ') empty_element = false;
      }
    }
    return false;
  }

 private:
  static Judge& of(http_parser* parser) { return *static_cast<Judge*>(parser->data); }
  SeenMessage::Fields& fields() { return in_trailers_ ? message_.trailers : message_.fields; }

  static http_parser_settings callbacks() {
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = [](http_parser* p, const char* at, std::size_t n) {
      of(p).message_.path.append(at, n);
      return 0;
    };
    settings.on_header_field = [](http_parser* p, const char* at, std::size_t n) {
      auto& fields = of(p).fields();
      if (of(p).in_value_ || fields.empty()) fields.emplace_back();
      of(p).in_value_ = false;
      fields.back().first += weir::http::h1::lower_case({at, n});
      return 0;
    };
    settings.on_header_value = [](http_parser* p, const char* at, std::size_t n) {
      of(p).in_value_ = true;
      of(p).fields().back().second.append(at, n);
      return 0;
    };
    settings.on_headers_complete = [](http_parser* p) {
      SeenMessage& message = of(p).message_;
      message.http11 = p->http_minor == 1;
      message.status = p->status_code;
      if (p->type == HTTP_REQUEST)
        message.method = http_method_str(static_cast<http_method>(p->method));
      of(p).in_trailers_ = true;
      of(p).in_value_ = false;
      // http_parser leaves it to its caller that a 304 never has a body: 1 means no body.
      return p->type == HTTP_RESPONSE && p->status_code == 304 ? 1 : 0;
    };
    settings.on_body = [](http_parser* p, const char* at, std::size_t n) {
      of(p).message_.body.append(at, n);
      return 0;
    };
    settings.on_message_complete = [](http_parser* p) {
      of(p).message_.complete = true;
      of(p).message_.keep_alive = http_should_keep_alive(p) != 0;
      return 0;
    };
    return settings;
  }

  http_parser parser_{};
  SeenMessage message_;
  char last_byte_ = 0;
  bool in_value_ = false;
  bool in_trailers_ = false;
};

/// http_parser keeps the blanks after a value.
inline void require_same_fields(const SeenMessage::Fields& ours,
                                const SeenMessage::Fields& theirs) {
  WEIR_ASSERT(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    std::string value = theirs[i].second;
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.pop_back();
    WEIR_ASSERT(ours[i].first == theirs[i].first && ours[i].second == value);
  }
}

inline void require_same_content(const SeenMessage& ours, const SeenMessage& theirs) {
  WEIR_ASSERT(theirs.complete);
  WEIR_ASSERT(ours.http11 == theirs.http11);
  WEIR_ASSERT(ours.body == theirs.body);
  require_same_fields(ours.fields, theirs.fields);
  require_same_fields(ours.trailers, theirs.trailers);
}

/// http_parser treats a field whose name only begins with "transfer-encoding" as that field: it
/// refuses such a request, and reads such a response until close. This is a bug of http_parser.
inline bool is_misread(const SeenMessage& ours) {
  for (const auto& [name, value] : ours.fields)
    if (name.starts_with("transfer-encoding") && name != "transfer-encoding") return true;
  return false;
}

}  // namespace fuzz
