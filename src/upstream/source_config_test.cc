#include "weir/experimental/upstream/source_config.h"

#include <gtest/gtest.h>

namespace weir::inline v0::upstream {
namespace {

TEST(SourceConfig, ReadsEachKindAndWritesItBack) {
  struct Row {
    const char* text;
    SourceKind kind;
    bool dynamic;
  };
  for (const Row& row : {
           Row{"127.0.0.1:80", SourceKind::kAddress, false},
           Row{"[::1]:80", SourceKind::kAddress, false},
           Row{"unix:/run/app.sock", SourceKind::kAddress, false},
           Row{"unix:@app", SourceKind::kAddress, false},
           Row{"api:8080", SourceKind::kAddress, true},
           Row{"dns:api:8080", SourceKind::kDns, true},
           Row{"dns:api.example.org.:8080", SourceKind::kDns, true},
           Row{"srv:_http._tcp.api", SourceKind::kSrv, true},
           Row{"srv:_grpc-x._tcp.api.example.org", SourceKind::kSrv, true},
           Row{"file:/etc/weir/api", SourceKind::kFile, true},
       }) {
    const auto spec = parse_source(row.text);
    ASSERT_TRUE(spec) << row.text << ": " << spec.error();
    EXPECT_EQ(spec->kind, row.kind) << row.text;
    EXPECT_EQ(spec->dynamic(), row.dynamic) << row.text;
    EXPECT_EQ(spec->to_string(), row.text);
  }
}

TEST(SourceConfig, ErrorsSayWhatIsWrong) {
  struct Row {
    const char* text;
    const char* error;
  };
  for (const Row& row : {
           Row{"", "it is empty"},
           Row{"127.0.0.1", "it has no port"},
           Row{"127.0.0.1:0", "its port is not 1 to 65535"},
           Row{"127.0.0.1:70000", "its port is not 1 to 65535"},
           Row{":80", "it has no host to connect to"},
           Row{"*:80", "it has no host to connect to"},
           Row{"::1:80", "its host is neither an address nor a name ([::1]:80 for IPv6)"},
           Row{"unix:relative", "its path does not start with / or @, or is too long"},
           Row{"dns:", "it is empty"},
           Row{"dns:api", "it has no port"},
           Row{"dns:127.0.0.1:80", "after dns: comes a host name, not an address"},
           Row{"dns:unix:/x", "after dns: comes a host name, not an address"},
           Row{"srv:api", "an SRV name has the form _service._proto.name"},
           Row{"srv:http.tcp.api", "an SRV name has the form _service._proto.name"},
           Row{"srv:_http._tcp", "an SRV name has the form _service._proto.name"},
           Row{"srv:_http._tcp.", "an SRV name has the form _service._proto.name"},
           Row{"srv:_http._tcp.a/b", "an SRV name has the form _service._proto.name"},
           Row{"file:relative", "its path does not start with /"},
           Row{"file:", "its path does not start with /"},
       }) {
    const auto spec = parse_source(row.text);
    ASSERT_FALSE(spec) << row.text;
    EXPECT_EQ(spec.error(), row.error) << row.text;
  }
}

TEST(SourceConfig, AttributesStandBehindTheSource) {
  const auto spec = parse_source("127.0.0.1:81  weight=2\tzone=b drain=true ");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->attributes, (EndpointAttributes{.weight = 2, .zone = "b", .draining = true}));
  EXPECT_EQ(spec->source(), "127.0.0.1:81");
  EXPECT_EQ(spec->to_string(), "127.0.0.1:81 weight=2 zone=b drain=true");
  EXPECT_EQ(*parse_source(spec->to_string()), *spec);
  EXPECT_EQ(parse_source("dns:api:80 zone=b")->attributes.zone, "b");
  EXPECT_EQ(parse_source("h:1 drain=yes").error(), "drain=yes: allowed are true and false");
}

}  // namespace
}  // namespace weir::inline v0::upstream
