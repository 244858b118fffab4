#include "upstream/discovery/make_source.h"

#include <gtest/gtest.h>

#include "discovery/source_testing.h"

namespace weir::inline v0::upstream {
namespace {

TEST(MakeSource, AnAddressIsItsOnlyEndpoint) {
  struct Row {
    const char* text;
    const char* host;
  };
  for (const Row& row : {Row{"127.0.0.1:80", "127.0.0.1"}, Row{"[2001:db8::1]:80", "2001:db8::1"},
                         Row{"unix:/run/app.sock", ""}}) {
    SourceRun run(row.text);
    run.start();
    EXPECT_EQ(run.sink.lists, 0) << "not from within start()";
    run.until([&] { return run.sink.lists == 1; });
    ASSERT_EQ(run.sink.last.size(), 1U);
    EXPECT_EQ(run.sink.last[0].address.to_string(), row.text);
    EXPECT_EQ(run.sink.last[0].host, row.host);
    EXPECT_EQ(run.source->status().source, row.text);
    EXPECT_EQ(run.source->status().next, TimePoint{}) << "it never looks again";
    run.source->stop();
  }
}

TEST(MakeSource, APlainNameIsLookedUp) {
  SourceRun run("api.test:80");
  run.server.set("api.test", io::DnsType::kA, {.records = {io::dns_bytes::a("10.0.0.1")}});
  run.start();
  run.until_text("10.0.0.1:80 ");
  EXPECT_EQ(run.source->status().source, "api.test:80");
}

TEST(MakeSource, EachKindHasItsSource) {
  for (const char* text : {"dns:api.test:80", "srv:_http._tcp.api.test", "file:/nonexistent/api"}) {
    SourceRun run(text);
    run.start();
    run.until([&] { return !run.sink.errors.empty(); });
    EXPECT_EQ(run.source->status().source, text);
    EXPECT_EQ(run.sink.lists, 0);
  }
}

}  // namespace
}  // namespace weir::inline v0::upstream
