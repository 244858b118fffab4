#include "identity.h"

#include <vector>

#include <gtest/gtest.h>

#include "head_testing.h"
#include "jwt_testing.h"

namespace weir::gateway {
namespace {

class IdentityFinderTest : public ::testing::Test {
 protected:
  Actor actor(const TestHead& head, std::vector<IdentityKind> kinds, bool peer = false,
              const char* client = "192.0.2.7") {
    Caller caller;
    caller.socket = caller.client = parse_ip(client);
    caller.peer = peer;
    return finder.actor_of(head.list(), caller, kinds, controller, text,
                           {.verifier = verifier, .now = {}, .unix_now = testkit::kTokenTime});
  }

  AdmissionController controller{AdmissionConfig{}, Rng(1)};
  IdentityFinder finder;
  TokenCounters counters;
  TokenVerifier verifier{{.cache_size = 4, .counters = counters}};
  IpText text;
};

TEST_F(IdentityFinderTest, TheFirstKindThatTheRequestProvesCounts) {
  const TestHead head{{"authorization", "Bearer t0ken"}, {"x-api-key", "k3y"}};
  const auto bearer = actor(head, {IdentityKind::kBearer, IdentityKind::kApiKey});
  const auto key = actor(head, {IdentityKind::kApiKey, IdentityKind::kBearer});
  EXPECT_EQ(bearer.kind, IdentityKind::kBearer);
  EXPECT_EQ(key.kind, IdentityKind::kApiKey);
  EXPECT_FALSE(bearer.identity.key == key.identity.key);
  EXPECT_FALSE(actor(head, {}).identity.present());
  EXPECT_FALSE(actor(TestHead{}, {IdentityKind::kBearer}).identity.present());
}

TEST_F(IdentityFinderTest, SecretsLeaveNoLabel) {
  const TestHead head{{"authorization", "Bearer t0ken"}, {"x-api-key", "k3y"}};
  EXPECT_TRUE(actor(head, {IdentityKind::kBearer}).identity.label.empty());
  EXPECT_TRUE(actor(head, {IdentityKind::kApiKey}).identity.label.empty());
}

TEST_F(IdentityFinderTest, OnlyTrustedPeersNameAnActor) {
  const TestHead head{{"x-weir-actor", "alice"}};
  EXPECT_FALSE(actor(head, {IdentityKind::kHeader}, false).identity.present());
  const Actor alice = actor(head, {IdentityKind::kHeader}, true);
  EXPECT_EQ(alice.identity.label, "alice");
}

TEST_F(IdentityFinderTest, AKeyCannotImpersonateANamedActor) {
  const TestHead key{{"x-api-key", "alice"}, {"authorization", "Bearer alice"}};
  const TestHead name{{"x-weir-actor", "alice"}};
  const Actor alice = actor(name, {IdentityKind::kHeader}, true);
  EXPECT_FALSE(actor(key, {IdentityKind::kApiKey}).identity.key == alice.identity.key);
  EXPECT_FALSE(actor(key, {IdentityKind::kBearer}).identity.key == alice.identity.key);
}

TEST_F(IdentityFinderTest, AddressesOfOneV6NetworkAreOneActor) {
  const std::vector<IdentityKind> kinds = {IdentityKind::kAddress};
  const Actor one = actor(TestHead{}, kinds, false, "2001:db8:1:2:3::4");
  EXPECT_EQ(one.identity.label, "2001:db8:1:2::");
  const Hash128 key = one.identity.key;
  EXPECT_EQ(actor(TestHead{}, kinds, false, "2001:db8:1:2:ffff::1").identity.key, key);
  EXPECT_FALSE(actor(TestHead{}, kinds, false, "2001:db8:1:3::1").identity.key == key);
  EXPECT_EQ(actor(TestHead{}, kinds, false, "192.0.2.7").identity.label, "192.0.2.7");
}

TEST_F(IdentityFinderTest, TheKeyHeaderMayHaveAnyName) {
  ActorsConfig config;
  config.api_key_header = "X-Customer";
  finder = IdentityFinder(config);
  const TestHead head{{"x-customer", "42"}};
  EXPECT_TRUE(actor(head, {IdentityKind::kApiKey}).identity.present());
  EXPECT_FALSE(actor(TestHead{{"x-api-key", "42"}}, {IdentityKind::kApiKey}).identity.present());
}

TEST_F(IdentityFinderTest, WithAFileOnlyItsKeysAreActorsByTheirOwners) {
  // sha256sum of "alpha" and "beta"
  const auto keys = KeyTable::parse(
      "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 gold\n"
      "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 gold\n");
  ASSERT_TRUE(keys);
  finder = IdentityFinder(ActorsConfig(), {.jwt = {}, .keys = *keys});
  const std::vector<IdentityKind> kinds = {IdentityKind::kApiKey};
  const Actor alpha = actor(TestHead{{"x-api-key", "alpha"}}, kinds);
  EXPECT_TRUE(alpha.identity.present());
  EXPECT_EQ(alpha.identity.label, "gold");
  EXPECT_EQ(alpha.identity.key, actor(TestHead{{"x-api-key", "beta"}}, kinds).identity.key);
  EXPECT_FALSE(actor(TestHead{{"x-api-key", "gold"}}, kinds).identity.present());
}

TEST_F(IdentityFinderTest, ATokenNamesAnActorOnlyIfItIsVerified) {
  const io::TestSigner signer = io::TestSigner::ec();
  finder = IdentityFinder(
      ActorsConfig(),
      {.jwt = {.keys = {*io::PublicKey::from_pem(signer.public_pem())}}, .keys = {}});
  const std::vector<IdentityKind> kinds = {IdentityKind::kJwt, IdentityKind::kAddress};
  const std::string claims = R"({"sub":"alice","exp":1900000000})";
  const std::string good = "Bearer " + testkit::make_jwt(signer, R"({"alg":"ES256"})", claims);
  const std::string forged =
      "Bearer " + testkit::make_jwt(io::TestSigner::ec(), R"({"alg":"ES256"})", claims);
  const Actor alice = actor(TestHead{{"authorization", good}}, kinds);
  EXPECT_EQ(alice.kind, IdentityKind::kJwt);
  EXPECT_EQ(alice.identity.label, "alice");
  EXPECT_EQ(actor(TestHead{{"authorization", forged}}, kinds).kind, IdentityKind::kAddress);
  EXPECT_FALSE(actor(TestHead{{"authorization", forged}}, {IdentityKind::kJwt}).identity.present());
}

TEST_F(IdentityFinderTest, APeerIsItsNameOrItsAddress) {
  Caller caller;
  caller.socket = parse_ip("10.0.0.1");
  const TestHead named{{"x-weir-peer", "gate-1"}};
  EXPECT_FALSE(IdentityFinder::peer_of(named.list(), caller, controller, text).present());
  caller.peer = true;
  EXPECT_EQ(IdentityFinder::peer_of(named.list(), caller, controller, text).label, "gate-1");
  EXPECT_EQ(IdentityFinder::peer_of(TestHead{}.list(), caller, controller, text).label, "10.0.0.1");
  caller.certificate = "CN=gate";
  EXPECT_EQ(IdentityFinder::peer_of(TestHead{}.list(), caller, controller, text).label, "CN=gate");
  EXPECT_EQ(IdentityFinder::peer_of(named.list(), caller, controller, text).label, "gate-1");
}

TEST_F(IdentityFinderTest, ATokenThatCouldNotBeVerifiedNowIsSaidToBeThrottled) {
  const io::TestSigner signer = io::TestSigner::ec();
  ActorsConfig config;
  config.jwt.verifications_max = 1;
  finder = IdentityFinder(
      config, {.jwt = {.keys = {*io::PublicKey::from_pem(signer.public_pem())}}, .keys = {}});
  const std::vector<IdentityKind> kinds = {IdentityKind::kJwt, IdentityKind::kApiKey};
  EXPECT_FALSE(actor(TestHead{{"authorization", "Bearer a.b.c"}}, kinds).throttled);
  EXPECT_TRUE(actor(TestHead{{"authorization", "Bearer d.e.f"}}, kinds).throttled);
  const TestHead both{{"authorization", "Bearer g.h.i"}, {"x-api-key", "k3y"}};
  EXPECT_EQ(actor(both, kinds).kind, IdentityKind::kApiKey) << "the next kind counts";
}

TEST(BearerToken, IsWhatFollowsTheScheme) {
  EXPECT_EQ(bearer_token("Bearer abc"), "abc");
  EXPECT_EQ(bearer_token("bEARER   abc"), "abc");
  EXPECT_EQ(bearer_token("Bearer "), "");
  EXPECT_EQ(bearer_token("Bearer"), "");
  EXPECT_EQ(bearer_token("Basic YWJj"), "");
  EXPECT_EQ(bearer_token(""), "");
}

}  // namespace
}  // namespace weir::gateway
