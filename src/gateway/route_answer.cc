#include "route_answer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "weir/base/assert.h"

namespace weir::inline v0::gateway {
namespace {

/// `redirect` with {host} and {path} of the request. None: it does not fit.
std::optional<std::string_view> location_for(std::string_view redirect,
                                             const http::RequestMeta& meta,
                                             std::span<char> out) noexcept {
  constexpr std::size_t kName = 6;  // of {host} and {path}
  std::size_t size = 0;
  const auto add = [&](std::string_view text) {
    if (text.size() > out.size() - size) return false;
    std::memcpy(out.data() + size, text.data(), text.size());
    size += text.size();
    return true;
  };
  while (!redirect.empty()) {
    const std::size_t open = std::min(redirect.find('{'), redirect.size());
    if (!add(redirect.substr(0, open))) return std::nullopt;
    redirect.remove_prefix(open);
    if (redirect.empty()) break;
    const bool host = redirect.starts_with("{host}");
    if (!add(host ? host_of(meta.authority) : meta.path)) return std::nullopt;
    redirect.remove_prefix(kName);
  }
  return std::string_view(out.data(), size);
}

/// Whether the request has what the redirect names. HTTP/1.0 needs no host, and "OPTIONS *" has no
/// path: "https:///x" would lead to the host x.
bool names_its_target(std::string_view redirect, const http::RequestMeta& meta) noexcept {
  const auto names = [redirect](std::string_view part) {
    return redirect.find(part) != std::string_view::npos;
  };
  return !(names("{host}") && host_of(meta.authority).empty()) &&
         !(names("{path}") && !meta.path.starts_with('/'));
}

}  // namespace

Result<std::uint16_t, GatewayRefusal> send_route_answer(ServerStream& stream,
                                                        const ServerRequest& request,
                                                        const Route& route,
                                                        const AnswerSpace& space) {
  const RouteAnswer& answer = route.config.answer;
  WEIR_ASSERT(answer.given() && space.fields.size() >= kRouteAnswerFields);
  std::size_t count = 0;
  const auto add = [&](std::string_view name, std::string_view value) {
    space.fields[count++] = {.name = name, .value = value};
  };
  bool typed = answer.respond_body.empty();
  for (const RouteEdits::Field& field : route.edits.response_add()) {
    add(field.name, field.value);
    typed |= field.name == "content-type";
  }
  if (!typed) add("content-type", "text/plain; charset=utf-8");
  if (!space.request_id.empty()) add("x-request-id", space.request_id);
  auto status = static_cast<std::uint16_t>(answer.respond);
  if (!answer.redirect.empty()) {
    if (!names_its_target(answer.redirect, request.meta)) {
      return unexpected(GatewayRefusal::kNoRoute);
    }
    const auto location = location_for(answer.redirect, request.meta, space.text);
    if (!location) return unexpected(GatewayRefusal::kHeadTooLarge);
    add("location", *location);
    status = static_cast<std::uint16_t>(answer.redirect_status);
  }
  const SendResult sent = stream.send_response(
      {.status = status, .fields = space.fields.first(count), .content_length = {}},
      answer.respond_body, BodyLife::kCall);
  if (sent == SendResult::kSent || sent == SendResult::kClosed) return status;
  stream.send_503();
  return std::uint16_t{503};
}

}  // namespace weir::inline v0::gateway
