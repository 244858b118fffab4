#include "http/h2/header_block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include <nghttp2/nghttp2.h>

#include "weir/experimental/http/response_framing.h"

#include "h2/request_check.h"
#include "http/h1/head_meaning.h"
#include "scan.h"

namespace weir::inline v0::http::h2 {
namespace {

constexpr std::uint32_t kFieldOverhead = 32;  // RFC 9113 §6.5.2, RFC 7541 §4.1

std::string_view text_of(nghttp2_rcbuf* buffer) noexcept {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

bool has_upper_case(std::string_view name) noexcept {
  return std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool all_of(std::string_view text, scan::ByteClass byte_class) noexcept {
  return std::all_of(text.begin(), text.end(), [&](char c) { return scan::is(c, byte_class); });
}

/// Fields that concern one HTTP/1.1 connection are not allowed in HTTP/2 (RFC 9113 §8.2.2).
bool is_connection_specific(FieldId id) noexcept {
  return id == FieldId::kConnection || id == FieldId::kProxyConnection ||
         id == FieldId::kKeepAlive || id == FieldId::kTransferEncoding || id == FieldId::kUpgrade;
}

/// Backends that map '_' to '-' (CGI and similar) would read these as framing fields.
bool is_framing_spelt_with_underscores(std::string_view name) noexcept {
  return name == "content_length" || name == "transfer_encoding";
}

bool has_outer_blank(std::string_view value) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  return !value.empty() && (blank(value.front()) || blank(value.back()));
}

}  // namespace

void HeaderBlock::begin(Kind kind, const H2Limits& limits) noexcept {
  clear();
  kind_ = kind;
  under_way_ = kind != Kind::kIgnored;
  const bool trailers = kind == Kind::kTrailers;
  count_max_ = trailers ? limits.trailer_count_max : limits.header_count_max;
  bytes_max_ = trailers ? limits.trailer_list_bytes_max : limits.header_list_bytes_max;
  uri_bytes_max_ = limits.uri_bytes_max;
  extended_connect_ = limits.extended_connect;
}

void HeaderBlock::drop_fields() noexcept {
  for (std::uint32_t i = 0; i < kept_size_; ++i) {
    nghttp2_rcbuf_decref(kept_[i].name);
    nghttp2_rcbuf_decref(kept_[i].value);
  }
  if (views_ != first_views_.data()) heap_->release(views_);
  if (kept_ != first_kept_.data()) heap_->release(kept_);
  heap_->release(cookie_);
  views_ = nullptr;
  kept_ = nullptr;
  cookie_ = nullptr;
  capacity_ = size_ = kept_size_ = 0;
}

void HeaderBlock::clear() noexcept {
  drop_fields();
  count_ = cookies_ = 0;
  bytes_ = 0;
  seen_pseudo_ = 0;
  for (std::string_view& value : pseudo_) value = {};
  kind_ = Kind::kIgnored;
  fault_ = BlockFault::kNone;
  under_way_ = false;
}

/// Keeps the first fault and drops the fields, which are not needed any more.
void HeaderBlock::fail(BlockFault fault) noexcept {
  if (fault_ == BlockFault::kNone) fault_ = fault;
  drop_fields();
}

template <class T>
bool HeaderBlock::grow(T*& entries, const T* in_place, std::uint32_t wanted) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (entries != in_place) {
    void* larger = heap_->reallocate(entries, wanted * sizeof(T));
    if (larger != nullptr) entries = static_cast<T*>(larger);
    return larger != nullptr;
  }
  void* first = heap_->allocate(wanted * sizeof(T));
  if (first == nullptr) return false;
  std::memcpy(first, in_place, capacity_ * sizeof(T));
  entries = static_cast<T*>(first);
  return true;
}

bool HeaderBlock::reserve() noexcept {
  if (kept_size_ < capacity_) return true;
  const std::uint32_t most = count_max_ + kPseudoCount;
  if (capacity_ == 0) {
    views_ = first_views_.data();
    kept_ = first_kept_.data();
    capacity_ = std::min(kInPlace, most);
    return true;
  }
  const std::uint32_t wanted = std::min(2 * capacity_, most);
  if (!grow(views_, first_views_.data(), wanted) || !grow(kept_, first_kept_.data(), wanted))
    return false;
  capacity_ = wanted;
  return true;
}

void HeaderBlock::add(nghttp2_rcbuf* name, nghttp2_rcbuf* value) noexcept {
  if (fault_ != BlockFault::kNone || kind_ == Kind::kIgnored) return;
  const std::string_view n = text_of(name);
  const std::string_view v = text_of(value);
  bytes_ += n.size() + v.size() + kFieldOverhead;
  const bool pseudo = !n.empty() && n.front() == ':';
  if (!pseudo) ++count_;
  if (pseudo && n == ":path" && v.size() > uri_bytes_max_) return fail(BlockFault::kUriTooLong);
  if (bytes_ > bytes_max_ || count_ > count_max_) return fail(BlockFault::kTooLarge);
  if (!reserve()) return fail(BlockFault::kNoMemory);
  nghttp2_rcbuf_incref(name);
  nghttp2_rcbuf_incref(value);
  kept_[kept_size_++] = {name, value};
  if (pseudo) {
    add_pseudo(n, v);
  } else {
    add_field(n, v);
  }
}

void HeaderBlock::add_pseudo(std::string_view name, std::string_view value) noexcept {
  static constexpr std::array<std::string_view, kPseudoCount> kNames = {
      ":method", ":scheme", ":authority", ":path", ":status", ":protocol"};
  // Pseudo-headers come first, each at most once, never in trailers; no others are allowed.
  const auto* known = std::find(kNames.begin(), kNames.end(), name);
  const auto which = static_cast<unsigned>(known - kNames.begin());
  const Kind belongs = which == kStatus ? Kind::kResponse : Kind::kRequest;
  if (known == kNames.end() || kind_ != belongs || count_ != 0) return fail(BlockFault::kMalformed);
  if ((seen_pseudo_ & (1U << which)) != 0) return fail(BlockFault::kMalformed);
  if (which == kProtocol && !extended_connect_) return fail(BlockFault::kMalformed);
  seen_pseudo_ = static_cast<std::uint8_t>(seen_pseudo_ | 1U << which);
  pseudo_[which] = value;
}

void HeaderBlock::add_field(std::string_view name, std::string_view value) noexcept {
  if (!is_valid_field_name(name) || has_upper_case(name) || is_framing_spelt_with_underscores(name))
    return fail(BlockFault::kMalformed);
  if (!is_valid_field_value(value) || has_outer_blank(value)) return fail(BlockFault::kMalformed);
  const FieldId id = field_id(name);
  if (is_connection_specific(id)) return fail(BlockFault::kMalformed);
  if (id == FieldId::kTe && !equals_ignore_case(value, "trailers"))
    return fail(BlockFault::kMalformed);
  if (kind_ == Kind::kTrailers && is_forbidden_in_trailers(id)) return fail(BlockFault::kMalformed);
  if (id == FieldId::kCookie) ++cookies_;
  views_[size_++] = {.name = name, .value = value, .id = id, .hop_by_hop = is_hop_by_hop(id)};
}

/// §8.2.3: cookie crumbs are joined to one field.
bool HeaderBlock::join_cookies() noexcept {
  if (cookies_ < 2) return true;
  std::size_t bytes = 2 * (std::size_t{cookies_} - 1);
  for (std::uint32_t i = 0; i < size_; ++i)
    if (views_[i].id == FieldId::kCookie) bytes += views_[i].value.size();
  cookie_ = static_cast<char*>(heap_->allocate(bytes));
  if (cookie_ == nullptr) return false;
  char* at = cookie_;
  HeaderView* first = nullptr;
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const HeaderView view = views_[i];
    if (view.id != FieldId::kCookie) {
      views_[left++] = view;
      continue;
    }
    if (first == nullptr) {
      first = &views_[left++];
      *first = view;
    } else {
      *at++ = ';';
      *at++ = ' ';
    }
    at = std::copy(view.value.begin(), view.value.end(), at);
  }
  first->value = {cookie_, bytes};
  size_ = left;
  return true;
}

BlockFault HeaderBlock::check_target(RequestHead& head) noexcept {
  constexpr unsigned kAll = 1U << kMethod | 1U << kScheme | 1U << kPath;
  const std::string_view method = pseudo_[kMethod];
  if (!is_valid_method(method)) return BlockFault::kMalformed;
  head.method = method_of(method);
  head.meta = {.method = method,
               .scheme = pseudo_[kScheme],
               .authority = pseudo_[kAuthority],
               .path = pseudo_[kPath],
               .protocol = pseudo_[kProtocol]};
  if (has(kProtocol)) {  // RFC 8441 §4: CONNECT with the target of an ordinary request
    const bool valid = head.method == Method::kConnect && is_valid_field_name(head.meta.protocol);
    if (!valid) return BlockFault::kMalformed;
  } else if (head.method == Method::kConnect) {
    const bool only = seen_pseudo_ == (1U << kMethod | 1U << kAuthority);
    const auto target = h1::parse_authority(head.meta.authority);
    return only && target && !target->port.empty() ? BlockFault::kNone : BlockFault::kMalformed;
  }
  if ((seen_pseudo_ & kAll) != kAll) return BlockFault::kMalformed;
  if (head.meta.scheme != "http" && head.meta.scheme != "https") return BlockFault::kMalformed;
  return is_valid_path(head.method, head.meta.path) ? BlockFault::kNone : BlockFault::kMalformed;
}

BlockFault HeaderBlock::check_meaning(RequestHead& head) noexcept {
  // Host may repeat :authority or replace it, but must not differ from it.
  if (head.headers.repeats(FieldId::kHost)) return BlockFault::kMalformed;
  if (const HeaderView* host = head.headers.find(FieldId::kHost); host != nullptr) {
    if (has(kAuthority) && !equals_ignore_case(host->value, head.meta.authority))
      return BlockFault::kMalformed;
    head.meta.authority = host->value;
  }
  if (!h1::parse_authority(head.meta.authority)) return BlockFault::kMalformed;
  if (const HeaderView* length = head.headers.find(FieldId::kContentLength); length != nullptr) {
    const auto bytes = h1::parse_content_length(length->value);
    if (!bytes || head.headers.repeats(FieldId::kContentLength)) return BlockFault::kMalformed;
    if (head.end_stream && *bytes != 0) return BlockFault::kMalformed;
    if (has(kProtocol)) return BlockFault::kMalformed;  // a tunnel has no length
    head.body_length = *bytes;
  }
  if (head.end_stream) head.body_length = 0;
  head.expect_continue = equals_ignore_case(head.headers.value(FieldId::kExpect), "100-continue");
  head.te_trailers = head.headers.has(FieldId::kTe);
  return BlockFault::kNone;
}

void HeaderBlock::list_fields(HeaderList& list) noexcept {
  list.reset({views_, size_});
  // In place: each field is read before its slot is written.
  for (std::uint32_t i = 0; i < size_; ++i) list.append(HeaderView(views_[i]));
}

BlockFault HeaderBlock::finish_request(bool end_stream, RequestHead& head) noexcept {
  if (fault_ != BlockFault::kNone) return fault_;
  head.end_stream = end_stream;
  if (const BlockFault fault = check_target(head); fault != BlockFault::kNone) return fault;
  if (!join_cookies()) return BlockFault::kNoMemory;
  list_fields(head.headers);
  return check_meaning(head);
}

/// The rules of HTTP/1.1 responses: a length where none is allowed is refused, except the harmless
/// "204, content-length: 0".
BlockFault HeaderBlock::check_length(bool to_head, ResponseHead& head) noexcept {
  const bool empty = to_head || head.end || never_has_body(head.status);
  if (empty) head.body_length = 0;
  const HeaderView* field = head.headers.find(FieldId::kContentLength);
  if (field == nullptr) return BlockFault::kNone;
  const auto bytes = h1::parse_content_length(field->value);
  if (!bytes || head.headers.repeats(FieldId::kContentLength) || head.informational)
    return BlockFault::kMalformed;
  if (!empty) head.body_length = *bytes;
  const bool announces_only = to_head || head.status == 304;  // the length that GET would have
  return empty && !announces_only && *bytes != 0 ? BlockFault::kMalformed : BlockFault::kNone;
}

BlockFault HeaderBlock::finish_response(bool end_stream, bool to_head,
                                        ResponseHead& head) noexcept {
  if (fault_ != BlockFault::kNone) return fault_;
  const std::string_view status = pseudo_[kStatus];
  if (status.size() != 3 || !all_of(status, scan::kDigit)) return BlockFault::kMalformed;
  head.status = static_cast<std::uint16_t>((status[0] - '0') * 100 + (status[1] - '0') * 10 +
                                           (status[2] - '0'));
  if (head.status < 100 || head.status > 599) return BlockFault::kMalformed;
  head.informational = head.status < 200;
  head.end = end_stream;
  // HTTP/2 has no 101 (RFC 9113 §8.6), and a 1xx cannot be the last head.
  if (head.status == 101 || (head.informational && end_stream)) return BlockFault::kMalformed;
  list_fields(head.headers);
  return check_length(to_head, head);
}

BlockFault HeaderBlock::finish_trailers(HeaderList& trailers) noexcept {
  if (fault_ != BlockFault::kNone) return fault_;
  list_fields(trailers);
  return BlockFault::kNone;
}

}  // namespace weir::inline v0::http::h2
