#include "weir/experimental/http/header_view.h"

#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "weir/experimental/http/h1/body_decoder.h"
#include "weir/experimental/http/h1/request_parser.h"

namespace weir::inline v0::http {
namespace {

/// A connection's read region with one request in it, and the views that a handler gets.
class Region {
 public:
  explicit Region(std::string_view request) : size_(request.size()) {
    std::memcpy(bytes_.data(), request.data(), request.size());
    const auto result = parser_.parse_head(whole(), storage_, head_);
    EXPECT_EQ(result.status, h1::ParseStatus::kComplete);
    at_ = result.consumed;
    decoder_ = h1::BodyDecoder(head_.body, limits_);
  }

  h1::BodyStep next() {
    const auto step = decoder_.next(whole().subspan(at_), storage_);
    at_ += step.consumed;
    return step;
  }
  /// Moves unconsumed bytes to the front, as a connection does before its next read.
  void compact() {
    std::memmove(bytes_.data(), bytes_.data() + at_, size_ - at_);
    std::memset(bytes_.data() + size_ - at_, '#', at_);
    size_ -= at_;
    at_ = 0;
  }
  void append(std::string_view more) {
    std::memcpy(bytes_.data() + size_, more.data(), more.size());
    size_ += more.size();
  }
  template <class T>
  [[nodiscard]] bool holds(const T* data, std::size_t len) const {
    const auto* p = reinterpret_cast<const char*>(data);
    return p >= bytes_.data() && p + len <= bytes_.data() + size_;
  }
  [[nodiscard]] const h1::RequestHead& head() const { return head_; }

 private:
  [[nodiscard]] std::span<const char> whole() const { return {bytes_.data(), size_}; }

  HttpLimits limits_;
  std::array<char, 32 * 1024> bytes_{};
  std::size_t size_;
  std::size_t at_ = 0;
  std::array<HeaderView, 100> storage_{};
  h1::RequestParser parser_{limits_};
  h1::RequestHead head_;
  h1::BodyDecoder decoder_;
};

constexpr std::string_view kPost =
    "POST /upload?x=1 HTTP/1.1\r\nHost: example.org:8080\r\nX-Colour: dark blue \r\n"
    "Content-Length: 10\r\n\r\n01234";

TEST(BodyView, ChunkViewPointsToBuffer) {
  Region region(kPost);
  const auto step = region.next();
  ASSERT_EQ(step.event, h1::BodyEvent::kData);
  EXPECT_EQ(step.chunk.text(), "01234");
  EXPECT_TRUE(region.holds(step.chunk.data, step.chunk.len));
}

TEST(BodyView, ChunkStatusContinue) {
  Region region(kPost);
  const auto step = region.next();
  EXPECT_EQ(step.chunk.status, BodyStatus::kContinue);
  EXPECT_FALSE(step.chunk.last());
  EXPECT_EQ(region.next().event, h1::BodyEvent::kNeedMore);
}

TEST(BodyView, ChunkStatusComplete) {
  Region region(kPost);
  EXPECT_FALSE(region.next().chunk.last());
  region.append("56789GET / HTTP/1.1");
  const auto step = region.next();
  EXPECT_EQ(step.chunk.text(), "56789");
  EXPECT_EQ(step.chunk.status, BodyStatus::kComplete);
  EXPECT_EQ(region.next().event, h1::BodyEvent::kNeedMore) << "the next request is not looked at";
}

TEST(BodyView, HeaderViewNameValue) {
  Region region(kPost);
  const HeaderList& headers = region.head().headers;
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[1].name, "X-Colour") << "in the sender's case";
  EXPECT_EQ(headers[1].value, "dark blue") << "without the blanks around it";
  EXPECT_EQ(headers[1].id, FieldId::kOther);
  for (const HeaderView& field : headers) {
    EXPECT_TRUE(region.holds(field.name.data(), field.name.size()));
    EXPECT_TRUE(region.holds(field.value.data(), field.value.size()));
  }
  EXPECT_EQ(headers.value(FieldId::kContentLength), "10");
  EXPECT_EQ(headers.find(FieldId::kHost), &headers[0]);
  EXPECT_EQ(headers.find(FieldId::kCookie), nullptr);
}

TEST(BodyView, MetaViewPseudoHeaders) {
  Region region(kPost);
  const RequestMeta& meta = region.head().meta;
  EXPECT_EQ(meta.method, "POST");
  EXPECT_EQ(meta.scheme, "http");
  EXPECT_EQ(meta.authority, "example.org:8080");
  EXPECT_EQ(meta.path, "/upload?x=1");
  EXPECT_TRUE(region.holds(meta.method.data(), meta.method.size()));
  EXPECT_TRUE(region.holds(meta.authority.data(), meta.authority.size()));
  EXPECT_TRUE(region.holds(meta.path.data(), meta.path.size()));
}

TEST(BodyView, ViewInvalidAfterCompact) {
  Region region(kPost);
  const BodyChunk kept = region.next().chunk;
  const std::string_view path = region.head().meta.path;
  ASSERT_EQ(kept.text(), "01234");
  region.compact();
  EXPECT_FALSE(region.holds(kept.data, kept.len)) << "it points behind what the region holds";
  EXPECT_NE(kept.text(), "01234");
  EXPECT_NE(path, "/upload?x=1");
  region.append("56789");
  EXPECT_EQ(region.next().chunk.text(), "56789") << "new views are good";
}

TEST(HeaderList, IndexesTheFirstOfEachKnownField) {
  std::array<HeaderView, 4> storage;
  HeaderList list;
  list.reset(storage);
  list.append({"via", "1.1 a", FieldId::kVia});
  list.append({"x", "y"});
  list.append({"Via", "1.1 b", FieldId::kVia});
  EXPECT_EQ(list.value(FieldId::kVia), "1.1 a");
  EXPECT_TRUE(list.repeats(FieldId::kVia));
  EXPECT_FALSE(list.has(FieldId::kOther));
  list.reset(storage);
  EXPECT_FALSE(list.has(FieldId::kVia));
  EXPECT_EQ(list.size(), 0U);
  EXPECT_EQ(list.value(FieldId::kVia), "");
}

}  // namespace
}  // namespace weir::inline v0::http
