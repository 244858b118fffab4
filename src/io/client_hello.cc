#include "io/client_hello.h"

namespace weir::inline v0::io {
constexpr std::size_t kRecordHeader = 5;
constexpr unsigned kHandshake = 22;
constexpr unsigned kMajor = 3;
constexpr unsigned kClientHello = 1;
constexpr std::size_t kSmallest = 4 + 2 + 32 + 1 + 2 + 2 + 1 + 1;  // no session, one cipher
constexpr std::size_t kRecordMax = 16384;

ClientHelloStatus judge_client_hello(std::span<const std::byte> bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const std::size_t size = bytes.size();
  if (size > 0 && at(0) != kHandshake) return ClientHelloStatus::kNotTls;
  if (size > 1 && at(1) != kMajor) return ClientHelloStatus::kNotTls;
  if (size > kRecordHeader && at(kRecordHeader) != kClientHello) return ClientHelloStatus::kNotTls;
  if (size < kRecordHeader) return ClientHelloStatus::kNeedMore;
  const std::size_t record = at(3) << 8U | at(4);
  if (record < kSmallest || record > kRecordMax) return ClientHelloStatus::kNotTls;
  if (size >= kRecordHeader + record || size >= kClientHelloStage) return ClientHelloStatus::kReady;
  return ClientHelloStatus::kNeedMore;
}

}  // namespace weir::inline v0::io
