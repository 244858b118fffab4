#include "weir/experimental/config/upstream_url.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::config {
namespace {

using testing::HasSubstr;
using upstream::Protocol;

Result<upstream::UpstreamConfig, std::string> from(const std::vector<std::string>& urls) {
  return upstream_from(urls);
}

TEST(UpstreamUrl, TheSchemeSaysHowTheServiceIsReached) {
  struct Row {
    const char* url;
    const char* source;
    bool tls;
    Protocol protocol;
  };
  for (const Row& row : {
           Row{"127.0.0.1:3000", "127.0.0.1:3000", false, Protocol::kAuto},
           Row{"3000", "127.0.0.1:3000", false, Protocol::kAuto},
           Row{"unix:/run/app.sock", "unix:/run/app.sock", false, Protocol::kAuto},
           Row{"http://app:81/", "app:81", false, Protocol::kAuto},
           Row{"http://app", "app:80", false, Protocol::kAuto},
           Row{"https://api.example.org", "api.example.org:443", true, Protocol::kAuto},
           Row{"https://[::1]", "[::1]:443", true, Protocol::kAuto},
           Row{"https://[::1]:8443", "[::1]:8443", true, Protocol::kAuto},
           Row{"h2c://127.0.0.1:50051", "127.0.0.1:50051", false, Protocol::kHttp2},
           Row{"dns:app:80 zone=b", "dns:app:80 zone=b", false, Protocol::kAuto},
           Row{"file:/etc/weir/app", "file:/etc/weir/app", false, Protocol::kAuto},
       }) {
    const auto made = from({row.url});
    ASSERT_TRUE(made) << row.url << ": " << made.error();
    ASSERT_EQ(made->endpoints.size(), 1U);
    EXPECT_EQ(made->endpoints[0].to_string(), row.source);
    EXPECT_EQ(made->tls_enabled, row.tls) << row.url;
    EXPECT_EQ(made->protocol, row.protocol) << row.url;
    EXPECT_EQ(made->name, "app");
    EXPECT_EQ(made->validate(LimitConfig()), ConfigErrors{}) << row.url;
  }
}

TEST(UpstreamUrl, SeveralAreReplicas) {
  const auto made = from({"https://a", "https://b:8443"});
  ASSERT_TRUE(made);
  ASSERT_EQ(made->endpoints.size(), 2U);
  EXPECT_EQ(made->endpoints[1].to_string(), "b:8443");
  EXPECT_TRUE(from({"http://a", "127.0.0.1:80"})) << "the same protocol";
}

TEST(UpstreamUrl, FaultsNameTheUrlAndTheReason) {
  EXPECT_THAT(from({"ftp://a"}).error(), HasSubstr("ftp://a: its scheme is not known"));
  EXPECT_THAT(from({"http://a/path"}).error(), HasSubstr("it has a path"));
  EXPECT_THAT(from({"https://me@a"}).error(), HasSubstr("it has a user name"));
  EXPECT_THAT(from({"app"}).error(), HasSubstr("app: it has no port; allowed are http://"));
  EXPECT_THAT(from({"http://"}).error(), HasSubstr("it has no host"));
  EXPECT_THAT(from({"https://a", "http://a"}).error(), HasSubstr("in the same way"));
}

}  // namespace
}  // namespace weir::config
