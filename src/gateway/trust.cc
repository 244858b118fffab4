#include "trust.h"

#include <algorithm>

#include "weir/base/ascii.h"

namespace weir::inline v0::gateway {
namespace {

bool any_contains(std::span<const IpRange> ranges, const IpAddress& address) noexcept {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const IpRange& range) { return range.contains(address); });
}

/// "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711".
std::optional<IpAddress> parse_hop(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    return end == std::string_view::npos ? std::nullopt : parse_ip(text.substr(1, end - 1));
  }
  const bool v4_port = std::count(text.begin(), text.end(), ':') == 1;
  return parse_ip(v4_port ? text.substr(0, text.find(':')) : text);
}

}  // namespace

std::optional<IpAddress> ip_of(const io::Address& address) noexcept {
  if (address.family != io::Family::kV4 && address.family != io::Family::kV6) return std::nullopt;
  const IpAddress ip{.bytes = address.ip, .v6 = address.family == io::Family::kV6};
  return ip.normalized();
}

Scheme scheme_of(const Caller& caller, bool secure, const http::HeaderList& headers) noexcept {
  std::string_view told;
  if (caller.proxy) {
    for (const http::HeaderView& field : headers) {
      if (field.id == http::FieldId::kXForwardedProto) told = field.value;
    }
  }
  if (const std::size_t comma = told.rfind(','); comma != std::string_view::npos) {
    told.remove_prefix(comma + 1);
  }
  told = trimmed(told);
  if (http::equals_ignore_case(told, "https")) return Scheme::kHttps;
  if (http::equals_ignore_case(told, "http")) return Scheme::kHttp;
  return secure ? Scheme::kHttps : Scheme::kHttp;
}

bool TrustTable::is_peer(const io::Address& socket) const noexcept {
  const auto ip = ip_of(socket);
  return ip && any_contains(peers_, *ip);
}

bool TrustTable::is_proxy(const io::Address& socket) const noexcept {
  const auto ip = ip_of(socket);
  return ip && any_contains(proxies_, *ip);
}

bool TrustTable::certified(std::string_view certificate) const noexcept {
  if (certificate.empty()) return false;
  return std::any_of(certificates_.begin(), certificates_.end(), [&](const std::string& subject) {
    return subject == "*" || subject == certificate;
  });
}

Caller TrustTable::judge(const io::Address& socket, const http::HeaderList& headers,
                         std::string_view certificate) const noexcept {
  Caller caller;
  caller.certificate = certificate;
  caller.peer = certified(certificate);
  caller.socket = ip_of(socket);
  caller.client = caller.socket;
  if (!caller.socket) return caller;
  caller.peer = caller.peer || any_contains(peers_, *caller.socket);
  caller.proxy = any_contains(proxies_, *caller.socket);
  if (!caller.proxy) return caller;
  if (const auto client = client_behind(headers)) caller.client = client;
  return caller;
}

Caller TrustTable::judge_unknown(const io::Address& proxy,
                                 std::string_view certificate) const noexcept {
  const auto ip = ip_of(proxy);
  return {.socket = ip,
          .client = ip,
          .certificate = certificate,
          .peer = certified(certificate),
          .proxy = false};
}

std::optional<IpAddress> TrustTable::client_behind(const http::HeaderList& headers) const noexcept {
  std::optional<IpAddress> nearest;
  const std::span<const http::HeaderView> fields = headers.all();
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not accept std::ranges::reverse_view
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (field->id != http::FieldId::kXForwardedFor) continue;
    std::string_view list = field->value;
    while (!list.empty()) {
      const std::size_t comma = list.rfind(',');
      const std::size_t start = comma == std::string_view::npos ? 0 : comma + 1;
      const auto hop = parse_hop(trimmed(list.substr(start)));
      if (!hop) return nearest;  // entries before an invalid one cannot be verified
      nearest = hop->normalized();
      if (!any_contains(proxies_, *nearest)) return nearest;
      list = comma == std::string_view::npos ? std::string_view{} : list.substr(0, comma);
    }
  }
  return nearest;
}

}  // namespace weir::inline v0::gateway
