#include "forward_head.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/experimental/http/field.h"

#include "baggage.h"
#include "local_answer.h"

namespace weir::inline v0::gateway {
namespace {

template <class... Ids>
constexpr std::uint64_t set_of(Ids... ids) {
  return (field_bit(ids) | ...);
}

constexpr std::uint64_t kOrigin =
    set_of(http::FieldId::kForwarded, http::FieldId::kXForwardedFor, http::FieldId::kXForwardedHost,
           http::FieldId::kXForwardedProto, http::FieldId::kXRealIp);
/// Rewritten, or answered by the gateway.
constexpr std::uint64_t kRewritten =
    set_of(http::FieldId::kHost, http::FieldId::kContentLength, http::FieldId::kTransferEncoding,
           http::FieldId::kExpect, http::FieldId::kTe, http::FieldId::kUpgrade,
           http::FieldId::kXForwardedFor);

constexpr std::size_t kBaggageMax = 8192;  // W3C Baggage §3.3.2

constexpr std::array<std::string_view, 3> kPseudonyms = {"1.0 weir", "1.1 weir", "2 weir"};

constexpr std::string_view kWebSocketKey = "sec-websocket-key";

bool is_named(const http::HeaderView& field, std::string_view name) noexcept {
  return field.id == http::FieldId::kOther && http::equals_ignore_case(field.name, name);
}

char plain(char c) noexcept {
  return c == '_' ? '-' : to_lower(c);
}

bool starts_like(std::string_view name, std::string_view prefix) noexcept {
  return name.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), name.begin(),
                    [](char want, char have) { return want == plain(have); });
}

bool starts_with_x(std::string_view name) noexcept {
  return name.size() >= 7 && plain(name[0]) == 'x' && plain(name[1]) == '-';
}

/// Whether a name reads as an x-weir field, known or not; also with '_' for '-'. The only test for
/// them: what the gateway itself tells the service must not come from a client.
bool claims_ours(std::string_view name) noexcept {
  return starts_with_x(name) && starts_like(name, "x-weir-");
}

/// The same for fields that name the origin of a request.
bool claims_origin(std::string_view name) noexcept {
  return starts_with_x(name) && (starts_like(name, "x-forwarded-") ||
                                 (name.size() == 9 && starts_like(name, "x-real-ip")));
}

bool forwards(const http::HeaderView& field, std::uint64_t removed) noexcept {
  if (field.hop_by_hop || claims_ours(field.name)) return false;
  if (field.id != http::FieldId::kOther) return (removed & field_bit(field.id)) == 0;
  const bool keeps_origin = (removed & field_bit(http::FieldId::kForwarded)) == 0;
  return keeps_origin || !claims_origin(field.name);
}

/// All addresses of the path, the sender's last, in one line: some applications read only one.
void write_forwarded_for(http::h1::HeadWriter& writer, const ServerRequest& request,
                         const ForwardPlan& plan) {
  std::array<char, 1024> joined;
  std::size_t size = 0;
  const auto add = [&](std::string_view text) {
    if (text.empty() || text.size() + 2 > joined.size() - size) return false;
    if (size > 0) size += std::string_view(", ").copy(joined.data() + size, 2);
    size += text.copy(joined.data() + size, text.size());
    return true;
  };
  if (plan.caller.proxy) {
    for (const http::HeaderView& field : *request.headers) {
      if (field.id == http::FieldId::kXForwardedFor && !add(field.value)) {
        writer.field("x-forwarded-for", field.value);  // too long to join: its own line
      }
    }
  }
  if (plan.caller.socket) add(text_of(*plan.caller.socket).view());
  if (size > 0) writer.field("x-forwarded-for", {joined.data(), size});
}

/// The fields that name the origin of the request.
void write_origin(http::h1::HeadWriter& writer, const ServerRequest& request,
                  const ForwardPlan& plan) {
  if (plan.forwarded == Forwarded::kOff) return;
  write_forwarded_for(writer, request, plan);
  const bool told = plan.caller.proxy && request.headers->has(http::FieldId::kXForwardedProto);
  if (!told) writer.field("x-forwarded-proto", request.secure ? "https" : "http");
}

/// Baggage of a sender that is not trusted: without a class, which the service would hand on.
void write_baggage(http::h1::HeadWriter& writer, const http::HeaderView& field) {
  if (!has_member(field.value, kPriorityMember)) return writer.field(field.name, field.value);
  std::array<char, kBaggageMax> kept;
  if (field.value.size() > kept.size()) return;  // more than the standard asks anybody to forward
  const std::string_view rest = without_member(field.value, kPriorityMember, kept);
  if (!rest.empty()) writer.field(field.name, rest);
}

/// The x-weir fields, for another Weir gateway behind this one.
void write_intent(http::h1::HeadWriter& writer, const ServerRequest& request,
                  const ForwardPlan& plan) {
  const Intent& intent = plan.intent;
  // Also said of normal if baggage could say something else.
  if (intent.priority != Priority::kNormal || baggage_priority(*request.headers)) {
    writer.field("x-weir-priority", name_of(intent.priority));
  }
  const std::string_view actor = request.headers->value(http::FieldId::kXWeirActor);
  if (plan.caller.peer && !actor.empty()) writer.field("x-weir-actor", actor);
}

}  // namespace

RequestId RequestId::draw(Rng& rng) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  RequestId id;
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t word = rng.next_u64();
    for (std::size_t i = 0; i < kBytes / 2; ++i, word >>= 4U) {
      id.text_[half * (kBytes / 2) + i] = kDigits[word & 15U];
    }
  }
  return id;
}

Result<upstream::RequestHead, http::h1::WriteError> write_request_head(std::span<char> out,
                                                                       const ServerRequest& request,
                                                                       const ForwardPlan& plan) {
  const http::HeaderList& headers = *request.headers;
  const bool keeps_origin = plan.caller.proxy && plan.forwarded != Forwarded::kOff;
  const std::uint64_t removed = kRewritten | (keeps_origin ? 0 : kOrigin);
  const std::string_view authority = !plan.edits.host().empty()       ? plan.edits.host()
                                     : request.meta.authority.empty() ? plan.fallback_host
                                                                      : request.meta.authority;

  const std::uint64_t rewritten =
      plan.intent.grpc_timeout ? set_of(http::FieldId::kGrpcTimeout) : 0;
  http::h1::HeadWriter writer(out);
  writer.request(request.meta.method, plan.path);
  const std::size_t host_at = writer.size();
  writer.field("host", authority);
  const std::size_t fields_begin = writer.size();
  for (const http::HeaderView& field : headers) {
    const bool replaced = !plan.websocket_key.empty() && is_named(field, kWebSocketKey);
    if (replaced || !forwards(field, removed | rewritten) ||
        plan.edits.removes_from_request(field.name)) {
      continue;
    }
    if (field.id == http::FieldId::kBaggage && !plan.caller.peer) {
      write_baggage(writer, field);
    } else {
      writer.field(field.name, field.value);
    }
  }
  for (const RouteEdits::Field& field : plan.edits.request_add()) {
    writer.field(field.name, field.value);
  }
  writer.field("via", kPseudonyms[static_cast<std::size_t>(request.version)]);
  write_origin(writer, request, plan);
  if (!headers.has(http::FieldId::kXRequestId)) writer.field("x-request-id", plan.request_id);
  write_intent(writer, request, plan);
  if (request.te_trailers) writer.fields("te: trailers\r\n");
  const bool has_body = request.body_length != std::optional<std::uint64_t>(0);
  if (request.body_length && (has_body || headers.has(http::FieldId::kContentLength))) {
    writer.content_length(*request.body_length);
  }
  const std::size_t fields_end = writer.size();
  if (plan.upgrade) {
    if (!plan.websocket_key.empty()) writer.field(kWebSocketKey, plan.websocket_key);
    writer.fields("connection: upgrade\r\nupgrade: websocket\r\n");
  }
  if (!request.body_length) writer.chunked();
  const Result<std::size_t, http::h1::WriteError> size = writer.end();
  if (!size) return unexpected(size.error());
  constexpr std::size_t kHostColon = 6;  // "host: "
  constexpr std::size_t kEmptyLine = 2;
  return upstream::RequestHead{
      .text = out.data(),
      .method_size = static_cast<std::uint32_t>(request.meta.method.size()),
      .path_size = static_cast<std::uint32_t>(plan.path.size()),
      .authority_begin = static_cast<std::uint32_t>(host_at + kHostColon),
      .authority_size = static_cast<std::uint32_t>(authority.size()),
      .fields_begin = static_cast<std::uint32_t>(fields_begin),
      .fields_end = static_cast<std::uint32_t>(fields_end),
      .size = static_cast<std::uint32_t>(*size - kEmptyLine),
      .method = request.method,
      .framing = !has_body             ? upstream::RequestFraming::kNone
                 : request.body_length ? upstream::RequestFraming::kLength
                                       : upstream::RequestFraming::kChunked,
      .upgrade = plan.upgrade,
      .trailers_accepted = request.te_trailers,
      .http2_only = is_grpc(request)};
}

std::span<const ResponseField> response_fields(const upstream::ResponseHead& head,
                                               std::string_view request_id, const RouteEdits& edits,
                                               std::span<ResponseField> storage, bool in_http2) {
  WEIR_ASSERT(storage.size() >= head.headers.size() + kResponseFieldsAdded);
  std::size_t count = 0;
  for (const http::HeaderView& field : head.headers) {
    if (field.hop_by_hop || field.id == http::FieldId::kContentLength) continue;
    if (in_http2 && head.tunnel && is_named(field, kWebSocketAccept)) continue;
    if (edits.removes_from_response(field.name)) continue;
    storage[count++] = {.name = field.name, .value = field.value};
  }
  for (const RouteEdits::Field& field : edits.response_add()) {
    storage[count++] = {.name = field.name, .value = field.value};
  }
  const std::size_t version = head.protocol == upstream::WireProtocol::kHttp2 ? 2
                              : head.http10                                   ? 0
                                                                              : 1;
  storage[count++] = {.name = "via", .value = kPseudonyms[version]};
  if (!request_id.empty() && !head.headers.has(http::FieldId::kXRequestId)) {
    storage[count++] = {.name = "x-request-id", .value = request_id};
  }
  if (head.tunnel && head.status == 101 && !in_http2) {
    storage[count++] = {.name = "upgrade", .value = head.headers.value(http::FieldId::kUpgrade)};
  }
  return storage.first(count);
}

bool may_forward_trailer(const http::HeaderView& field) noexcept {
  if (field.hop_by_hop || is_forbidden_in_trailers(field.id)) return false;
  return !claims_ours(field.name) && !claims_origin(field.name);
}

}  // namespace weir::inline v0::gateway
