#include "weir/experimental/client/client_config.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client_shape.h"

namespace weir::inline v0::inline client {
namespace {

ClientConfig to(std::vector<std::string> endpoints) {
  ClientConfig config;
  config.endpoints = std::move(endpoints);
  return config;
}

std::vector<std::string> keys(const ConfigErrors& errors) {
  std::vector<std::string> all;
  for (const ConfigError& error : errors) all.push_back(error.key);
  return all;
}

TEST(ClientConfig, TheDefaultsNeedOnlyEndpoints) {
  EXPECT_EQ(keys(to({"127.0.0.1:80"}).validate()), std::vector<std::string>{});
  EXPECT_EQ(keys(to({}).validate()), std::vector<std::string>{"endpoints"});
}

TEST(ClientConfig, EndpointsAreWrittenAsForTheGateway) {
  for (const char* good : {"http://a", "https://a:8443", "h2c://a:1", "dns:a:80", "unix:/run/x",
                           "srv:_http._tcp.a", "file:/etc/x", "127.0.0.1:80 weight=2 zone=b"}) {
    EXPECT_EQ(keys(to({good}).validate()), std::vector<std::string>{}) << good;
  }
  for (const char* bad : {"", "a", "ftp://a:1", "http://a/path", "http://u@a"}) {
    const ConfigErrors errors = to({bad}).validate();
    ASSERT_EQ(errors.size(), 1U) << bad;
    EXPECT_EQ(errors[0].key, "endpoints");
  }
  EXPECT_EQ(to({"http://a", "https://b"}).validate().size(), 1U) << "one scheme";
}

TEST(ClientConfig, EveryBoundHasARange) {
  ClientConfig config = to({"127.0.0.1:80"});
  config.timeout = config.connect_timeout = Duration(0);
  config.request_head_max = 0;
  config.request_body_max = 2U << 20U;
  config.response_head_max = 1;
  config.response_body_max = 2U << 30U;
  config.loops = 4;
  config.max_in_flight = 3;
  config.queue_max = 0;
  config.max_connections = 0;
  config.authority = "a b";
  config.hedge.quantile = 2;
  const std::vector<std::string> found = keys(config.validate());
  for (const char* key :
       {"timeout", "connect_timeout", "request_head_max", "request_body_max", "response_head_max",
        "response_body_max", "max_in_flight", "queue_max", "max_connections", "authority"}) {
    EXPECT_NE(std::find(found.begin(), found.end(), key), found.end()) << key;
  }
}

TEST(ClientConfig, TheHostIsThatOfTheFirstEndpoint) {
  const auto host = [](std::vector<std::string> endpoints, std::string authority = "") {
    ClientConfig config = to(std::move(endpoints));
    config.authority = std::move(authority);
    return authority_of(config, *upstream_of(config));
  };
  EXPECT_EQ(host({"127.0.0.1:8080", "127.0.0.1:8081"}), "127.0.0.1:8080");
  EXPECT_EQ(host({"http://a"}), "a") << "the usual port is left out";
  EXPECT_EQ(host({"https://a"}), "a");
  EXPECT_EQ(host({"https://a:80"}), "a:80");
  EXPECT_EQ(host({"dns:a:81"}), "a:81");
  EXPECT_EQ(host({"unix:/run/x"}), "localhost");
  EXPECT_EQ(host({"file:/etc/x"}), "localhost");
  EXPECT_EQ(host({"file:/etc/x"}, "b"), "b");
}

TEST(ClientConfig, TheMostMemoryGrowsWithEachBound) {
  const ClientConfig config = to({"127.0.0.1:80"});
  const std::uint64_t before = config.worst_case_bytes();
  EXPECT_GT(before, config.max_in_flight * std::uint64_t{config.response_body_max});
  ClientConfig more = config;
  more.response_body_max += 1000;
  EXPECT_EQ(more.worst_case_bytes(), before + (128U + 32U) * 2000U);
  more = config;
  more.queue_max += 1;
  EXPECT_GT(more.worst_case_bytes(), before + config.request_body_max);
  more = config;
  more.max_in_flight += 1;
  EXPECT_GT(more.worst_case_bytes(), before + config.response_body_max);
  more = config;
  more.endpoints = {"h2c://127.0.0.1:80"};
  EXPECT_GT(more.worst_case_bytes(), before) << "sessions";
}

}  // namespace
}  // namespace weir::inline v0::inline client
