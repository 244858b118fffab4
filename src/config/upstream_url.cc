#include "weir/experimental/config/upstream_url.h"

#include <array>
#include <string_view>

namespace weir::inline v0::config {
namespace {

struct Scheme {
  std::string_view prefix;
  std::string_view port;  // if the URL has none
  bool tls = false;
  upstream::Protocol protocol = upstream::Protocol::kAuto;
};
constexpr std::array<Scheme, 3> kSchemes = {
    Scheme{"http://", "80", false, upstream::Protocol::kAuto},
    Scheme{"https://", "443", true, upstream::Protocol::kAuto},
    Scheme{"h2c://", "80", false, upstream::Protocol::kHttp2},
};
constexpr Scheme kNone{};

const Scheme& scheme_of(std::string_view url) {
  for (const Scheme& scheme : kSchemes) {
    if (url.starts_with(scheme.prefix)) return scheme;
  }
  return kNone;
}

bool has_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  return colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
}

/// "HOST:PORT" of a URL; the error says what is wrong.
Result<std::string, std::string_view> authority_of(std::string_view rest, const Scheme& scheme) {
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return unexpected(
        std::string_view("it has a path; requests are forwarded with the path they came with"));
  }
  if (rest.find('@') != std::string_view::npos) {
    return unexpected(std::string_view("it has a user name, which cannot be forwarded"));
  }
  std::string text(rest);
  if (!has_port(rest)) text += ":" + std::string(scheme.port);
  return text;
}

/// "8080" means the loopback address.
std::string with_host(std::string_view text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  return (digits && !text.empty() ? "127.0.0.1:" : "") + std::string(text);
}

}  // namespace

Result<upstream::UpstreamConfig, std::string> upstream_from(std::span<const std::string> urls) {
  upstream::UpstreamConfig made;
  made.name = "app";
  const Scheme* common = nullptr;
  for (const std::string& url : urls) {
    const auto wrong = [&url](std::string_view why) {
      return unexpected(url + ": " + std::string(why) + "; allowed are http://HOST:PORT, " +
                        "https://HOST:PORT, h2c://HOST:PORT and " +
                        std::string(upstream::kSourceSyntax));
    };
    const Scheme& scheme = scheme_of(url);
    const bool plain = scheme.prefix.empty();
    if (plain && url.find("://") != std::string::npos) return wrong("its scheme is not known");
    const Result<std::string, std::string_view> authority =
        plain ? with_host(url)
              : authority_of(std::string_view(url).substr(scheme.prefix.size()), scheme);
    if (!authority) return wrong(authority.error());
    auto source = upstream::parse_source(*authority);
    if (!source) return wrong(source.error());
    if (common != nullptr && (common->tls != scheme.tls || common->protocol != scheme.protocol)) {
      return wrong("all replicas of one service are reached in the same way");
    }
    common = &scheme;
    made.endpoints.push_back(std::move(*source));
    made.tls_enabled = scheme.tls;
    made.protocol = scheme.protocol;
  }
  return made;
}

}  // namespace weir::inline v0::config
