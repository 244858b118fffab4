#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/experimental/http/h2_config.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/http/method.h"

#include "http/h2/region_heap.h"

struct nghttp2_rcbuf;

namespace weir::inline v0::http::h2 {

/// The error of a header list.
enum class BlockFault : std::uint8_t {
  kNone,
  kMalformed,   // RFC 9113 §8.2, §8.3: reset the stream
  kTooLarge,    // 431: too many bytes or fields
  kUriTooLong,  // 414
  kNoMemory,
};

/// A request head received over HTTP/2.
///
/// Lifetime: that of the block on which finish_request() was called, until it is cleared.
struct RequestHead {
  RequestMeta meta;
  HeaderList headers;                        // without pseudo-headers; with a single cookie field
  std::optional<std::uint64_t> body_length;  // 0 when the head ends the stream
  Method method = Method::kOther;
  bool end_stream = false;
  bool expect_continue = false;
  bool te_trailers = false;
};

/// A complete, checked head of a response.
///
/// Lifetime: as RequestHead.
struct ResponseHead {
  std::uint16_t status = 0;                  // 100 to 599; never 101
  HeaderList headers;                        // without :status
  std::optional<std::uint64_t> body_length;  // that follows; 0 for `end`, HEAD, 204 and 304
  bool informational = false;                // 1xx: another head follows
  bool end = false;                          // no body and no trailers follow
};

/// Receives one header list field by field while it is decoded, checks and counts each field, and
/// keeps references to the decoder's strings, so that nothing is copied.
///
/// Promises: an accepted list has no byte, name or combination that RFC 9113 §8.2 and §8.3 forbid,
/// and nothing that would change its meaning in HTTP/1.1. Cookie crumbs are joined to one field
/// (§8.2.3), but each is counted. After a fault, fields are only counted: memory is bounded for a
/// list of any length.
/// Thread-safety: none. Lifetime: views are valid until clear().
class HeaderBlock {
 public:
  enum class Kind : std::uint8_t { kRequest, kResponse, kTrailers, kIgnored };

  explicit HeaderBlock(RegionHeap& heap) noexcept : heap_(&heap) {}
  HeaderBlock(const HeaderBlock&) = delete;
  HeaderBlock& operator=(const HeaderBlock&) = delete;
  ~HeaderBlock() = default;  // its memory belongs to the heap

  void begin(Kind kind, const H2Limits& limits) noexcept;
  void add(nghttp2_rcbuf* name, nghttp2_rcbuf* value) noexcept;
  /// Call it after the last field. Returns a fault, or fills in the head.
  [[nodiscard]] BlockFault finish_request(bool end_stream, RequestHead& head) noexcept;
  /// `to_head`: the request was HEAD.
  [[nodiscard]] BlockFault finish_response(bool end_stream, bool to_head,
                                           ResponseHead& head) noexcept;
  [[nodiscard]] BlockFault finish_trailers(HeaderList& trailers) noexcept;
  void clear() noexcept;

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool under_way() const noexcept { return under_way_; }

 private:
  static constexpr std::uint32_t kInPlace = 12;  // fields that need no memory from the heap
  struct Kept {
    nghttp2_rcbuf* name;
    nghttp2_rcbuf* value;
  };
  enum Pseudo : std::uint8_t {
    kMethod,
    kScheme,
    kAuthority,
    kPath,
    kStatus,
    kProtocol,
    kPseudoCount
  };

  [[nodiscard]] bool reserve() noexcept;
  template <class T>
  [[nodiscard]] bool grow(T*& entries, const T* in_place, std::uint32_t wanted) noexcept;
  void drop_fields() noexcept;
  void fail(BlockFault fault) noexcept;
  void add_pseudo(std::string_view name, std::string_view value) noexcept;
  void add_field(std::string_view name, std::string_view value) noexcept;
  [[nodiscard]] BlockFault check_target(RequestHead& head) noexcept;
  [[nodiscard]] bool has(Pseudo which) const noexcept {
    return (seen_pseudo_ & (1U << which)) != 0;
  }
  [[nodiscard]] BlockFault check_meaning(RequestHead& head) noexcept;
  [[nodiscard]] BlockFault check_length(bool to_head, ResponseHead& head) noexcept;
  [[nodiscard]] bool join_cookies() noexcept;
  void list_fields(HeaderList& list) noexcept;

  RegionHeap* heap_;
  std::array<HeaderView, kInPlace> first_views_;
  std::array<Kept, kInPlace> first_kept_;
  HeaderView* views_ = nullptr;
  Kept* kept_ = nullptr;
  char* cookie_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t size_ = 0;       // fields in views_
  std::uint32_t kept_size_ = 0;  // references held, including those of pseudo-headers
  std::uint32_t count_max_ = 0;
  std::uint32_t bytes_max_ = 0;
  std::uint32_t uri_bytes_max_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t cookies_ = 0;
  std::uint64_t bytes_ = 0;
  std::string_view pseudo_[kPseudoCount];
  std::uint8_t seen_pseudo_ = 0;
  Kind kind_ = Kind::kIgnored;
  BlockFault fault_ = BlockFault::kNone;
  bool under_way_ = false;
  bool extended_connect_ = false;  // :protocol is allowed
};

}  // namespace weir::inline v0::http::h2
