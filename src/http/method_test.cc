#include "weir/experimental/http/method.h"

#include <gtest/gtest.h>

namespace weir::inline v0::http {
namespace {

TEST(Method, TokensAreExactAndCaseSensitive) {
  struct Row {
    const char* token;
    Method method;
    bool safe;
    bool idempotent;
  };
  for (const Row& row :
       {Row{"GET", Method::kGet, true, true}, Row{"HEAD", Method::kHead, true, true},
        Row{"POST", Method::kPost, false, false}, Row{"PUT", Method::kPut, false, true},
        Row{"DELETE", Method::kDelete, false, true}, Row{"CONNECT", Method::kConnect, false, false},
        Row{"OPTIONS", Method::kOptions, true, true}, Row{"TRACE", Method::kTrace, true, true},
        Row{"PATCH", Method::kPatch, false, false}, Row{"get", Method::kOther, false, false},
        Row{"GETS", Method::kOther, false, false}, Row{"GE", Method::kOther, false, false},
        Row{"PURGE", Method::kOther, false, false}, Row{"UNLOCK", Method::kOther, false, false},
        Row{"", Method::kOther, false, false}}) {
    EXPECT_EQ(method_of(row.token), row.method) << row.token;
    EXPECT_EQ(is_safe(row.method), row.safe) << row.token;
    EXPECT_EQ(is_idempotent(row.method), row.idempotent) << row.token;
  }
}

}  // namespace
}  // namespace weir::inline v0::http
