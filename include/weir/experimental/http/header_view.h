#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/experimental/http/field.h"

namespace weir::inline v0::http {

/// One field as it was received: views into the bytes it was parsed from.
///
/// Promises (if a codec made it): the name is a token in the sender's case; the value has no
/// surrounding blanks and no control byte except tab. `hop_by_hop` is set for the fixed list and
/// for the names in Connection, so a proxy forwards exactly the fields where it is false.
/// Lifetime: that of the bytes. They move when the read region is compacted or read into again.
struct HeaderView {
  std::string_view name;
  std::string_view value;
  FieldId id = FieldId::kOther;
  bool hop_by_hop = false;
};

/// What a request asks for, in terms of HTTP/2's pseudo-headers; the same for both protocols.
///
/// `authority` is the Host field or that of an absolute target (they are equal when both are
/// there), empty for HTTP/1.0 without either. `path` holds the query; it is "*" for OPTIONS * and
/// empty for CONNECT without `protocol`. `protocol` is what an extended CONNECT asks for (RFC
/// 8441), otherwise empty. Nothing is decoded or normalised. Lifetime: that of the bytes, except
/// `scheme`, which may be a literal.
struct RequestMeta {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;
  std::string_view path;
  std::string_view protocol{};
};

enum class BodyStatus : std::uint8_t { kContinue, kComplete };

/// A piece of a body: a view into the bytes received. Only the last piece of a body is kComplete;
/// it may be empty.
struct BodyChunk {
  const std::uint8_t* data = nullptr;
  std::size_t len = 0;
  BodyStatus status = BodyStatus::kContinue;

  [[nodiscard]] bool last() const noexcept { return status == BodyStatus::kComplete; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {data, len}; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(data), len};
  }
};

/// The fields of one head or trailer section, in order, with the first of each known field indexed.
///
/// Cost: find() is two loads. Lifetime: that of the storage given to the codec, and of the bytes.
class HeaderList {
 public:
  [[nodiscard]] std::span<const HeaderView> all() const noexcept { return fields_; }
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
  [[nodiscard]] auto end() const noexcept { return fields_.end(); }
  [[nodiscard]] const HeaderView& operator[](std::size_t i) const noexcept { return fields_[i]; }

  [[nodiscard]] bool has(FieldId id) const noexcept { return (seen_ & field_bit(id)) != 0; }
  /// Whether there is more than one line with this name. One line may still contain a list.
  [[nodiscard]] bool repeats(FieldId id) const noexcept { return (again_ & field_bit(id)) != 0; }
  /// The first line of a known field, or nullptr.
  [[nodiscard]] const HeaderView* find(FieldId id) const noexcept {
    return has(id) ? &fields_[first_[static_cast<std::size_t>(id)]] : nullptr;
  }
  /// Its value, or an empty view.
  [[nodiscard]] std::string_view value(FieldId id) const noexcept {
    const HeaderView* found = find(id);
    return found != nullptr ? found->value : std::string_view{};
  }

  /// For codecs: starts again with `storage`. Append in order; fields() returns those appended.
  void reset(std::span<HeaderView> storage) noexcept {
    storage_ = storage.data();
    fields_ = {storage_, 0};
    seen_ = again_ = 0;
  }
  void append(const HeaderView& field) noexcept {
    const std::size_t at = fields_.size();
    storage_[at] = field;
    fields_ = {storage_, at + 1};
    if (field.id == FieldId::kOther) return;
    const std::uint64_t bit = field_bit(field.id);
    if ((seen_ & bit) == 0)
      first_[static_cast<std::size_t>(field.id)] = static_cast<std::uint8_t>(at);
    again_ |= seen_ & bit;
    seen_ |= bit;
  }
  [[nodiscard]] std::span<HeaderView> fields_for_codec() noexcept {
    return {storage_, fields_.size()};
  }

 private:
  HeaderView* storage_ = nullptr;
  std::span<const HeaderView> fields_;
  std::uint64_t seen_ = 0;
  std::uint64_t again_ = 0;
  std::array<std::uint8_t, static_cast<std::size_t>(FieldId::kCount)> first_{};
};

}  // namespace weir::inline v0::http
