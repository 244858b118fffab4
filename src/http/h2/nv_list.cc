#include "h2/nv_list.h"

#include "weir/experimental/http/field.h"

namespace weir::inline v0::http::h2 {
namespace {

bool may_be_sent(FieldId id) noexcept {
  switch (id) {
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

/// Values that an attacker could guess from the size of a compressed block, and values that differ
/// in every request: each of those would push out an entry that is used again.
bool stays_out_of_the_table(FieldId id) noexcept {
  switch (id) {
    case FieldId::kSetCookie:
    case FieldId::kAuthorization:
    case FieldId::kProxyAuthorization:
    case FieldId::kCookie:
    case FieldId::kXApiKey:
    case FieldId::kXRequestId:
    case FieldId::kTraceparent:
    case FieldId::kXWeirDeadlineMs:
    case FieldId::kGrpcTimeout:
      return true;
    default:
      return false;
  }
}

}  // namespace

void NvList::add(std::string_view name, std::string_view value, FieldId id) noexcept {
  // The library's type is non-const, but it copies names (in lower case) and values.
  entries_[size_++] = {
      .name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
      .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
      .namelen = name.size(),
      .valuelen = value.size(),
      .flags = static_cast<std::uint8_t>(stays_out_of_the_table(id) ? NGHTTP2_NV_FLAG_NO_INDEX
                                                                    : NGHTTP2_NV_FLAG_NONE)};
  bytes_ += name.size() + value.size() + 64;
}

bool NvList::append(std::span<const Field> fields) noexcept {
  for (const Field& field : fields) {
    if (size_ == entries_.size()) return false;
    if (!is_valid_field_name(field.name) || !is_valid_field_value(field.value)) return false;
    const FieldId id = field_id(field.name);
    if (!may_be_sent(id)) return false;
    add(field.name, field.value, id);
  }
  return true;
}

}  // namespace weir::inline v0::http::h2
