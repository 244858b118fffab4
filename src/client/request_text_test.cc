#include "request_text.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::inline v0::inline client {
namespace {

std::string written(const ClientRequest& request, upstream::RequestHead* parts = nullptr) {
  std::vector<char> space(ClientConfig{}.request_head_max + head_room("h:1"));
  const upstream::RequestHead head = write_head(space, request, "h:1");
  if (parts != nullptr) *parts = head;
  return {head.text, head.size};
}

TEST(RequestText, WritesOneHead) {
  upstream::RequestHead parts;
  const ClientRequest request{.method = "POST",
                              .path = "/a?b",
                              .headers = {{"x-one", "1"}, {"x-two", ""}},
                              .body = "12345",
                              .priority = Priority::kLow};
  const std::string text = written(request, &parts);
  EXPECT_EQ(text,
            "POST /a?b HTTP/1.1\r\nhost: h:1\r\nx-one: 1\r\nx-two: \r\nx-weir-priority: low\r\n"
            "content-length: 5\r\n");
  EXPECT_EQ(parts.method, http::Method::kPost);
  EXPECT_EQ(parts.framing, upstream::RequestFraming::kLength);
  EXPECT_EQ(parts.fields_end, parts.size) << "all of it for every protocol";
  EXPECT_EQ(text.substr(parts.fields_begin, 5), "x-one");
  EXPECT_EQ(text.substr(parts.authority_begin, parts.authority_size), "h:1");
}

TEST(RequestText, OnlyMethodsWithABodyHaveALengthOfZero) {
  EXPECT_EQ(written({}), "GET / HTTP/1.1\r\nhost: h:1\r\n");
  EXPECT_EQ(written({.method = "PUT"}), "PUT / HTTP/1.1\r\nhost: h:1\r\ncontent-length: 0\r\n");
  EXPECT_EQ(written({.method = "DELETE"}), "DELETE / HTTP/1.1\r\nhost: h:1\r\n");
}

TEST(RequestText, WhatCannotBeSentIsRefused) {
  using std::string;
  const ClientConfig config;
  const auto objection = [&](ClientRequest request) { return objection_to(request, config); };
  EXPECT_EQ(objection({}), std::nullopt);
  EXPECT_EQ(objection({.method = "MERGE", .path = "/%20?a=b&c"}), std::nullopt);
  for (const char* path :
       {"", "a", "*", "/ a", "/\r\n", "/\x7f", "/#part", "/\xc3\xa4", "http://x"}) {
    EXPECT_EQ(objection({.path = path}), ClientErrorKind::kBadRequest) << path;
  }
  for (const char* method : {"", "G T", "GET\r\n", "CONNECT"}) {
    EXPECT_EQ(objection({.method = method}), ClientErrorKind::kBadRequest) << method;
  }
  const std::array<ClientHeader, 14> bad = {{{"", "x"},
                                             {"a b", "x"},
                                             {"a:", "x"},
                                             {"a", "x\r\ny: z"},
                                             {"a", string(1, '\0')},
                                             {"Host", "x"},
                                             {"content-length", "1"},
                                             {"Transfer-Encoding", "chunked"},
                                             {"connection", "close"},
                                             {"upgrade", "websocket"},
                                             {"expect", "100-continue"},
                                             {"x-weir-priority", "critical"},
                                             {"X-Weir-Attempt", "1"},
                                             {"x-weir-deadline-ms", "1"}}};
  for (const ClientHeader& header : bad) {
    EXPECT_EQ(objection({.headers = {header}}), ClientErrorKind::kBadRequest) << header.name;
  }
  EXPECT_EQ(objection({.headers = {{"x-weir-actor", "a"}, {"authorization", "b"}}}), std::nullopt);
}

TEST(RequestText, SizesAreBounded) {
  const ClientConfig config;
  const std::string longest(config.request_head_max - 4, 'a');
  EXPECT_EQ(objection_to({.path = "/" + longest}, config), std::nullopt);
  EXPECT_EQ(objection_to({.path = "/a" + longest}, config), ClientErrorKind::kHeadTooLarge);
  EXPECT_EQ(objection_to({.headers = std::vector<ClientHeader>(101, {"a", "b"})}, config),
            ClientErrorKind::kHeadTooLarge);
  EXPECT_EQ(objection_to({.body = std::string(config.request_body_max, 'x')}, config),
            std::nullopt);
  EXPECT_EQ(objection_to({.body = std::string(config.request_body_max + 1, 'x')}, config),
            ClientErrorKind::kBodyTooLarge);
}

TEST(RequestText, TheLargestRequestFitsItsBlock) {
  const ClientConfig config;
  const ClientRequest request{.method = "POST",
                              .path = "/" + std::string(config.request_head_max - 5, 'a'),
                              .body = std::string(config.request_body_max, 'x'),
                              .priority = Priority::kCritical};
  ASSERT_EQ(objection_to(request, config), std::nullopt);
  EXPECT_GT(written(request).size(), config.request_head_max);
  const ClientRequest fields{.headers = std::vector<ClientHeader>(
                                 100, {"n", std::string(config.request_head_max / 100 - 6, 'v')}),
                             .priority = Priority::kCritical};
  ASSERT_EQ(objection_to(fields, config), std::nullopt);
  EXPECT_GT(written(fields).size(), config.request_head_max - 200);
}

}  // namespace
}  // namespace weir::inline v0::inline client
