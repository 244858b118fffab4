#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/experimental/http/field.h"
#include "weir/experimental/http/header_view.h"
#include "weir/experimental/server/handler.h"

namespace weir::inline v0::gateway {

/// A parsed request head for tests, from plain name-value pairs.
class TestHead {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;

  TestHead(std::initializer_list<Pair> fields = {})
      : TestHead(std::span<const Pair>(fields.begin(), fields.size())) {}
  explicit TestHead(std::span<const Pair> fields) {
    storage_.resize(fields.size() + 1);
    list_.reset(storage_);
    for (const auto& [name, value] : fields) {
      const http::FieldId id = http::field_id(name);
      list_.append({name, value, id, is_hop_by_hop(id)});
    }
  }
  TestHead(const TestHead&) = delete;
  TestHead& operator=(const TestHead&) = delete;

  [[nodiscard]] const http::HeaderList& list() const noexcept { return list_; }
  /// A request with these fields; the test changes what it is about.
  [[nodiscard]] ServerRequest request(std::string_view method = "GET",
                                      std::string_view path = "/") const {
    ServerRequest request;
    request.meta = {.method = method, .scheme = "http", .authority = "example.com", .path = path};
    request.headers = &list_;
    request.method = http::method_of(method);
    request.body_length = 0;
    request.peer.family = io::Family::kV4;
    request.peer.ip = {192, 0, 2, 7};
    request.peer.port = 4711;
    return request;
  }

 private:
  std::vector<http::HeaderView> storage_;
  http::HeaderList list_;
};

}  // namespace weir::inline v0::gateway
