#include "asset_page.h"

#include <algorithm>
#include <string>

#include "weir/experimental/http/field.h"

#include "dashboard/asset.h"

namespace weir::inline v0::gateway {
namespace {

/// Calls `found` with each element of a comma list: its name and its parameters, without blanks.
/// True as soon as one call is.
template <class Found>
bool any_element(std::string_view list, Found found) {
  const auto trimmed = [](std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
  };
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const std::size_t semicolon = std::min(one.find(';'), one.size());
    const std::string_view parameters = one.substr(std::min(semicolon + 1, one.size()));
    if (found(trimmed(one.substr(0, semicolon)), trimmed(parameters))) return true;
  }
  return false;
}

/// Whether the list has this element, not with a quality of zero.
bool accepts(std::string_view list, std::string_view wanted) {
  return any_element(list, [wanted](std::string_view name, std::string_view parameters) {
    const bool refused = parameters.starts_with("q=0") &&
                         parameters.find_first_not_of("0.", 2) == std::string_view::npos;
    return http::equals_ignore_case(name, wanted) && !refused;
  });
}

bool has_tag(std::string_view list, std::string_view tag) {
  return any_element(list, [tag](std::string_view one, std::string_view) {
    if (one.starts_with("W/")) one.remove_prefix(2);
    return one == tag || one == "*";
  });
}

}  // namespace

std::optional<AdminPage> asset_page(const AdminRequest& request) {
  constexpr std::string_view kFolder = "/dashboard/";
  std::string_view name;
  if (request.path == "/" && accepts(request.accept, "text/html")) name = "index.html";
  if (request.path.starts_with(kFolder)) name = request.path.substr(kFolder.size());
  const dashboard::Asset* asset = dashboard::find_asset(name);
  if (asset == nullptr) return std::nullopt;
  const bool gzip = accepts(request.accept_encoding, "gzip");
  AdminPage page{.content_type = asset->content_type,
                 .cache_control = "no-cache",  // ask each time, and get 304
                 .runs_scripts = asset->content_type.starts_with("text/html")};
  const std::string tag = "\"" + std::string(asset->hash) + (gzip ? "-gz\"" : "\"");
  page.fields.push_back({.name = "etag", .value = tag});
  page.fields.push_back({.name = "vary", .value = "accept, accept-encoding"});
  if (has_tag(request.if_none_match, tag)) {
    page.status = 304;
    return page;
  }
  if (gzip) page.fields.push_back({.name = "content-encoding", .value = "gzip"});
  page.static_body = gzip ? asset->gzip : asset->content;
  return page;
}

}  // namespace weir::inline v0::gateway
