#include "weir/experimental/http/method.h"

namespace weir::inline v0::http {

Method method_of(std::string_view token) noexcept {
  switch (token.size()) {
    case 3:
      if (token == "GET") return Method::kGet;
      if (token == "PUT") return Method::kPut;
      break;
    case 4:
      if (token == "POST") return Method::kPost;
      if (token == "HEAD") return Method::kHead;
      break;
    case 5:
      if (token == "PATCH") return Method::kPatch;
      if (token == "TRACE") return Method::kTrace;
      break;
    case 6:
      if (token == "DELETE") return Method::kDelete;
      break;
    case 7:
      if (token == "OPTIONS") return Method::kOptions;
      if (token == "CONNECT") return Method::kConnect;
      break;
    default:
      break;
  }
  return Method::kOther;
}

}  // namespace weir::inline v0::http
