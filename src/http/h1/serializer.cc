#include "weir/experimental/http/h1/serializer.h"

#include <cstring>

#include "weir/base/assert.h"
#include "weir/base/number_text.h"

#include "scan.h"

namespace weir::inline v0::http::h1 {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

[[nodiscard]] bool is_framing_field(std::string_view name) noexcept {
  if (name.size() != 14 && name.size() != 17) return false;
  const FieldId id = field_id(name);
  return id == FieldId::kContentLength || id == FieldId::kTransferEncoding;
}

[[nodiscard]] bool is_valid_target(std::string_view target) noexcept {
  const char* end = target.data() + target.size();
  return !target.empty() && scan::skip_target(target.data(), end) == end;
}

[[nodiscard]] std::size_t hex_size(std::uint64_t number) noexcept {
  std::size_t digits = 1;
  while ((number >>= 4U) != 0) ++digits;
  return digits;
}

/// Writes `digits` hex digits and CRLF.
void write_size_line(char* at, std::uint64_t number, std::size_t digits) noexcept {
  for (std::size_t i = digits; i-- > 0; number >>= 4U) at[i] = kHexDigits[number & 15U];
  at[digits] = '\r';
  at[digits + 1] = '\n';
}

}  // namespace

std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    // clang-format off
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return {};
      // clang-format on
  }
}

void HeadWriter::fail(WriteError error) noexcept {
  if (failed_) return;
  failed_ = true;
  error_ = error;
}

void HeadWriter::put(std::string_view text) noexcept {
  if (failed_) return;
  if (text.size() > out_.size() - size_) return fail(WriteError::kDoesNotFit);
  if (!text.empty()) std::memcpy(out_.data() + size_, text.data(), text.size());
  size_ += text.size();
}

void HeadWriter::status(unsigned code, std::string_view reason, Version version) noexcept {
  if (code < 100 || code > 599 || !is_valid_field_value(reason) || size_ != 0)
    return fail(WriteError::kBadStartLine);
  // 1xx and 204 have no body, so they must not have framing (RFC 9110 §8.6, RFC 9112 §6.1).
  may_frame_ = code >= 200 && code != 204;
  version_ = version;
  if (version == Version::k11 && code == 200 && reason.empty()) return put("HTTP/1.1 200 OK\r\n");
  put(version == Version::k11 ? "HTTP/1.1 " : "HTTP/1.0 ");
  const char digits[4] = {static_cast<char>('0' + code / 100),
                          static_cast<char>('0' + code / 10 % 10),
                          static_cast<char>('0' + code % 10), ' '};
  put({digits, sizeof digits});
  put(reason.empty() ? reason_phrase(code) : reason);
  put("\r\n");
}

void HeadWriter::request(std::string_view method, std::string_view target,
                         Version version) noexcept {
  if (!is_valid_field_name(method) || !is_valid_target(target) || size_ != 0)
    return fail(WriteError::kBadStartLine);
  version_ = version;
  put(method);
  put(" ");
  put(target);
  put(version == Version::k11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
}

void HeadWriter::field(std::string_view name, std::string_view value) noexcept {
  if (!is_valid_field_name(name)) return fail(WriteError::kBadName);
  if (is_framing_field(name)) return fail(WriteError::kBadFraming);
  if (!is_valid_field_value(value)) return fail(WriteError::kBadValue);
  put_line(name, value);
}

void HeadWriter::put_line(std::string_view name, std::string_view value) noexcept {
  if (failed_) return;
  // A missing start line is a bug of the caller that would make the first field the start line.
  if (size_ == 0) return fail(WriteError::kBadStartLine);
  const std::size_t need = name.size() + value.size() + 4;
  if (need > out_.size() - size_) return fail(WriteError::kDoesNotFit);
  char* at = out_.data() + size_;
  std::memcpy(at, name.data(), name.size());
  at += name.size();
  *at++ = ':';
  *at++ = ' ';
  if (!value.empty()) std::memcpy(at, value.data(), value.size());
  at += value.size();
  *at++ = '\r';
  *at = '\n';
  size_ += need;
}

void HeadWriter::field(std::string_view name, std::uint64_t value) noexcept {
  field(name, NumberText(value).view());
}

void HeadWriter::fields(FieldBlock block) noexcept {
  if (size_ == 0) return fail(WriteError::kBadStartLine);
  put(block.lines());
}

void HeadWriter::content_length(std::uint64_t bytes) noexcept {
  if (framed_ || !may_frame_) return fail(WriteError::kBadFraming);
  framed_ = true;
  put_line("content-length", NumberText(bytes).view());
}

void HeadWriter::chunked() noexcept {
  if (framed_ || !may_frame_ || version_ == Version::k10) return fail(WriteError::kBadFraming);
  framed_ = true;
  put_line("transfer-encoding", "chunked");
}

Result<std::size_t, WriteError> HeadWriter::end() noexcept {
  if (size_ == 0) fail(WriteError::kBadStartLine);
  put("\r\n");
  if (failed_) return unexpected(error_);
  return size_;
}

std::span<const char> frame_chunk(std::span<char> buffer, std::size_t payload) noexcept {
  WEIR_ASSERT(payload > 0 && payload <= UINT32_MAX);
  WEIR_ASSERT(buffer.size() >= kChunkHeadRoom + payload + kChunkTailRoom);
  const std::size_t digits = hex_size(payload);
  const std::size_t begin = kChunkHeadRoom - digits - 2;
  write_size_line(buffer.data() + begin, payload, digits);
  char* const tail = buffer.data() + kChunkHeadRoom + payload;
  tail[0] = '\r';
  tail[1] = '\n';
  return buffer.subspan(begin, kChunkHeadRoom + payload + kChunkTailRoom - begin);
}

std::size_t write_chunk_head(std::span<char> out, std::uint32_t payload) noexcept {
  WEIR_ASSERT(payload > 0 && out.size() >= kChunkHeadRoom);
  const std::size_t digits = hex_size(payload);
  write_size_line(out.data(), payload, digits);
  return digits + 2;
}

Result<std::size_t, WriteError> write_last_chunk(std::span<char> out,
                                                 std::span<const HeaderView> trailers) noexcept {
  constexpr std::string_view kSize = "0\r\n";
  if (out.size() < kSize.size()) return unexpected(WriteError::kDoesNotFit);
  std::memcpy(out.data(), kSize.data(), kSize.size());
  HeadWriter writer(out);
  writer.continue_after(kSize.size());
  for (const HeaderView& field : trailers) {
    // By name, not by id: the caller may have built the views itself.
    if (is_forbidden_in_trailers(field_id(field.name))) return unexpected(WriteError::kBadFraming);
    writer.field(field.name, field.value);
  }
  return writer.end();
}

}  // namespace weir::inline v0::http::h1
