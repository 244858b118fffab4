#include "h2/request_check.h"

#include <algorithm>

#include "weir/experimental/http/field.h"

#include "http/h1/head_meaning.h"
#include "scan.h"

namespace weir::inline v0::http::h2 {
namespace {

constexpr std::size_t kMethodBytesMax = 32;

/// Other fields are checked by NvList.
bool is_replaced(const Field& field) noexcept {
  const FieldId id = field_id(field.name);
  if (id == FieldId::kTe) return !equals_ignore_case(field.value, "trailers");
  return id == FieldId::kHost || id == FieldId::kHttp2Settings;
}

}  // namespace

bool is_valid_method(std::string_view method) noexcept {
  return is_valid_field_name(method) && method.size() <= kMethodBytesMax;
}

bool is_valid_path(Method method, std::string_view path) noexcept {
  if (path == "*") return method == Method::kOptions;
  return !path.empty() && path.front() == '/' &&
         std::all_of(path.begin(), path.end(), [](char c) { return scan::is(c, scan::kTarget); });
}

bool may_be_requested(const RequestStart& start) noexcept {
  if (!is_valid_method(start.method)) return false;
  const Method method = method_of(start.method);
  if (method == Method::kConnect) return false;
  if (start.scheme != "http" && start.scheme != "https") return false;
  if (!start.authority.empty() && !h1::parse_authority(start.authority)) return false;
  return is_valid_path(method, start.path) &&
         std::none_of(start.fields.begin(), start.fields.end(), is_replaced);
}

}  // namespace weir::inline v0::http::h2
