#include "discovery/endpoint_file.h"

#include <gtest/gtest.h>

namespace weir::inline v0::upstream {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_endpoint_file(text);
  return parsed ? "none" : parsed.error();
}

TEST(EndpointFile, ReadsLinesWithAttributesAndComments) {
  const auto parsed = parse_endpoint_file(
      "# replicas of api\n"
      "\n"
      "10.0.0.1:8080\n"
      "  10.0.0.2:8080   weight=5\tzone=eu-1 # the large one\r\n"
      "[2001:db8::1]:8080 drain=true\n"
      "unix:/run/api.sock zone=eu-2 drain=false");
  ASSERT_TRUE(parsed) << parsed.error();
  ASSERT_EQ(parsed->size(), 4U);
  EXPECT_EQ((*parsed)[0], (DiscoveredEndpoint{.address = *io::parse_socket_name("10.0.0.1:8080"),
                                              .host = "10.0.0.1",
                                              .weight = 1,
                                              .zone = "",
                                              .draining = false}));
  EXPECT_EQ((*parsed)[1].weight, 5U);
  EXPECT_EQ((*parsed)[1].zone, "eu-1");
  EXPECT_EQ((*parsed)[2].address.to_string(), "[2001:db8::1]:8080");
  EXPECT_EQ((*parsed)[2].host, "2001:db8::1");
  EXPECT_TRUE((*parsed)[2].draining);
  EXPECT_EQ((*parsed)[3].address.to_string(), "unix:/run/api.sock");
  EXPECT_EQ((*parsed)[3].host, "");
  EXPECT_FALSE((*parsed)[3].draining);
}

TEST(EndpointFile, CommentsOnlyAreAnEmptyListAndNothingIsAnError) {
  ASSERT_TRUE(parse_endpoint_file("# none today\n"));
  EXPECT_TRUE(parse_endpoint_file("# none today\n")->empty());
  EXPECT_TRUE(parse_endpoint_file("\n")->empty());
  EXPECT_EQ(error_of(""), "the file is empty");
}

TEST(EndpointFile, ErrorsNameTheLineAndWhatIsAllowed) {
  struct Row {
    const char* text;
    const char* error;
  };
  constexpr const char* kAddresses =
      ": allowed are addresses with port (127.0.0.1:80, [::1]:80) and unix:/path; names are for "
      "dns: sources";
  for (const Row& row : {
           Row{"10.0.0.1:80\nx y", "line 2: \"x\""},
           Row{"api:80", "line 1: \"api:80\""},
           Row{":80", "line 1: \":80\""},
           Row{"10.0.0.1:0", "line 1: \"10.0.0.1:0\""},
           Row{"10.0.0.1", "line 1: \"10.0.0.1\""},
       }) {
    EXPECT_EQ(error_of(row.text), std::string(row.error) + kAddresses);
  }
  for (const Row& row : {
           Row{"\n\n10.0.0.1:80 weight=0", "line 3: weight=0: allowed is 1 to 65535"},
           Row{"10.0.0.1:80 weight=70000", "line 1: weight=70000: allowed is 1 to 65535"},
           Row{"10.0.0.1:80 weight=", "line 1: weight=: allowed is 1 to 65535"},
           Row{"10.0.0.1:80 weight=1x", "line 1: weight=1x: allowed is 1 to 65535"},
           Row{"10.0.0.1:80 zone=", "line 1: zone=: allowed are 1 to 64 printable characters"},
           Row{"10.0.0.1:80 drain=yes", "line 1: drain=yes: allowed are true and false"},
           Row{"10.0.0.1:80 drain",
               "line 1: \"drain\": allowed are weight=N, zone=Z and drain=true"},
           Row{"10.0.0.1:80 wieght=2",
               "line 1: \"wieght\": allowed are weight=N, zone=Z and drain=true"},
           Row{"10.0.0.1:80\n#\n10.0.0.1:80 weight=2",
               "line 3: \"10.0.0.1:80\" is in line 1 already"},
       }) {
    EXPECT_EQ(error_of(row.text), row.error);
  }
}

TEST(EndpointFile, TheNumberOfEndpointsIsBounded) {
  std::string text;
  for (std::size_t i = 0; i < kFileEndpointsMax; ++i) {
    text += "10.0.0.1:" + std::to_string(1000 + i) + '\n';
  }
  EXPECT_EQ(parse_endpoint_file(text)->size(), kFileEndpointsMax);
  EXPECT_EQ(error_of(text + "10.0.0.1:80"), "line 1025: allowed are at most 1024 endpoints");
}

}  // namespace
}  // namespace weir::inline v0::upstream
