#include "h2/nv_list.h"

#include "weir/experimental/http/field.h"

namespace weir::inline v0::http::h2 {
namespace {

bool may_be_sent(const Field& field) noexcept {
  if (!is_valid_field_name(field.name) || !is_valid_field_value(field.value)) return false;
  switch (field_id(field.name)) {
    case FieldId::kConnection:
    case FieldId::kKeepAlive:
    case FieldId::kProxyConnection:
    case FieldId::kTransferEncoding:
    case FieldId::kUpgrade:
      return false;
    default:
      return true;
  }
}

/// Values that an attacker could guess from the size of a compressed block: kept out of the table.
bool is_secret(std::string_view name) noexcept {
  const FieldId id = field_id(name);
  return id == FieldId::kSetCookie || id == FieldId::kAuthorization ||
         id == FieldId::kProxyAuthorization || id == FieldId::kCookie || id == FieldId::kXApiKey;
}

}  // namespace

nghttp2_nv NvList::to_nv(std::string_view name, std::string_view value) noexcept {
  // The library's type is non-const, but it copies names (in lower case) and values.
  return {.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = static_cast<std::uint8_t>(is_secret(name) ? NGHTTP2_NV_FLAG_NO_INDEX
                                                             : NGHTTP2_NV_FLAG_NONE)};
}

bool NvList::append(std::span<const Field> fields) noexcept {
  for (const Field& field : fields) {
    if (size_ == entries_.size() || !may_be_sent(field)) return false;
    add(field.name, field.value);
  }
  return true;
}

}  // namespace weir::inline v0::http::h2
