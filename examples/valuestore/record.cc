#include "record.h"

#include <cstring>

namespace valuestore {
namespace {

constexpr std::size_t kHeadSize = 1 + sizeof(std::uint64_t);

}  // namespace

ValueKey Record::key() const {
  return ValueKey::of(kind == RecordKind::kRecipe ? std::string_view("recipe\0", 7) : "", payload);
}

std::string Record::encoded() const {
  std::string bytes(kHeadSize, '\0');
  bytes[0] = static_cast<char>(kind);
  std::memcpy(bytes.data() + 1, &epoch, sizeof epoch);
  return bytes += payload;
}

std::optional<Record> Record::decode(std::string_view bytes) {
  if (bytes.size() < kHeadSize || static_cast<unsigned char>(bytes[0]) > 1) return std::nullopt;
  Record record;
  record.kind = static_cast<RecordKind>(bytes[0]);
  std::memcpy(&record.epoch, bytes.data() + 1, sizeof record.epoch);
  record.payload = bytes.substr(kHeadSize);
  return record;
}

}  // namespace valuestore
