#include "token_verifier.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jwt_testing.h"

namespace weir::gateway {
namespace {

using io::PublicKey;
using io::TestSigner;
using std::chrono::milliseconds;
using testkit::make_jwt;

struct TokenVerifierTest : testing::Test {
  TestSigner signer = TestSigner::ec();
  JwtRules rules{.keys = {*PublicKey::from_pem(signer.public_pem())}};
  AdmissionController controller{AdmissionConfig{}, Rng(1)};
  TokenCounters counters;
  TokenVerifier verifier{{.cache_size = 16, .counters = counters}};
  std::uint32_t per_second = 100;
  TimePoint now{milliseconds(1000)};
  std::int64_t unix_now = testkit::kTokenTime;

  std::string token(const std::string& name, std::int64_t expires = testkit::kTokenTime + 600) {
    return make_jwt(signer, R"({"alg":"ES256"})",
                    R"({"sub":")" + name + R"(","exp":)" + std::to_string(expires) + "}");
  }
  Result<Identity, JwtFault> ask(const std::string& text, std::uint64_t source = 1) {
    return verifier.identify({.token = text, .source = source, .now = now, .unix_now = unix_now},
                             rules, per_second, controller);
  }
};

TEST_F(TokenVerifierTest, TheNameInTheTokenIsTheIdentity) {
  const auto one = ask(token("alice"));
  const auto again = ask(token("alice", testkit::kTokenTime + 700));
  ASSERT_TRUE(one && again);
  EXPECT_EQ(one->key, controller.identify("alice").key);
  EXPECT_EQ(one->key, again->key);
}

TEST_F(TokenVerifierTest, ARightTokenIsVerifiedOnceUntilItExpires) {
  const std::string text = token("alice", testkit::kTokenTime + 10);
  for (int i = 0; i < 5; ++i) {
    const auto found = ask(text);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->label, "alice");
  }
  EXPECT_EQ(counters.verified.get(), 1U);
  EXPECT_EQ(counters.cached.get(), 4U);
  unix_now = testkit::kTokenTime + 10 + kJwtLeewaySeconds;
  EXPECT_EQ(ask(text).error(), JwtFault::kExpired);
}

TEST_F(TokenVerifierTest, OtherRulesForgetWhatWasRight) {
  const std::string text = token("alice");
  ASSERT_TRUE(ask(text));
  rules.keys = {*PublicKey::from_pem(TestSigner::ec().public_pem())};
  verifier.forget();
  EXPECT_EQ(ask(text).error(), JwtFault::kSignature);
}

TEST_F(TokenVerifierTest, ASourceHasSoManyVerificationsASecond) {
  per_second = 3;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("bad").error(), JwtFault::kMalformed);
  EXPECT_EQ(ask("bad").error(), JwtFault::kThrottled);
  EXPECT_EQ(ask("bad", 2).error(), JwtFault::kMalformed) << "another source";
  now += milliseconds(334);
  EXPECT_EQ(ask("bad").error(), JwtFault::kMalformed);
  EXPECT_EQ(ask("bad").error(), JwtFault::kThrottled);
  EXPECT_EQ(counters.faults[static_cast<std::size_t>(JwtFault::kThrottled)].get(), 2U);
}

TEST_F(TokenVerifierTest, AllSourcesTogetherHaveTwentyTimesThat) {
  per_second = 3;
  int verified = 0;
  for (std::uint64_t source = 0; source < 200; ++source) {
    verified += ask("bad", source).error() == JwtFault::kMalformed ? 1 : 0;
  }
  EXPECT_EQ(verified, 60);
}

TEST_F(TokenVerifierTest, WhatAllSourcesTogetherUsedUpCostsASourceNothing) {
  per_second = 2;
  for (std::uint64_t source = 10; source < 30; ++source) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ask("bad", source).error(), JwtFault::kMalformed);
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask("bad", 1).error(), JwtFault::kThrottled);
  now += milliseconds(100);  // four for all, a fifth of one for the source
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask("bad", 1).error(), JwtFault::kMalformed);
  EXPECT_EQ(ask("bad", 1).error(), JwtFault::kThrottled);
}

TEST_F(TokenVerifierTest, ARememberedTokenIsNotThrottled) {
  const std::string text = token("alice");
  ASSERT_TRUE(ask(text));
  per_second = 1;
  static_cast<void>(ask("bad"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(text));
}

TEST_F(TokenVerifierTest, ATokenThatIsTooLongUsesNoVerification) {
  per_second = 1;
  const std::string large(kJwtBytesMax + 1, 'a');
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(large).error(), JwtFault::kTooLong);
  EXPECT_TRUE(ask(token("alice")));
}

TEST_F(TokenVerifierTest, TheTokenThatExpiresFirstMakesRoom) {
  TokenVerifier small({.cache_size = 4, .counters = counters});
  const auto known = [&](const std::string& text) {
    const std::uint64_t before = counters.cached.get();
    EXPECT_TRUE(small.identify({.token = text, .source = 1, .now = now, .unix_now = unix_now},
                               rules, per_second, controller));
    return counters.cached.get() > before;
  };
  std::vector<std::string> tokens;
  for (const int left : {300, 100, 400, 200}) {
    tokens.push_back(token("user" + std::to_string(left), testkit::kTokenTime + left));
    EXPECT_FALSE(known(tokens.back()));
  }
  EXPECT_FALSE(known(token("newcomer", testkit::kTokenTime + 500)));
  for (const std::size_t kept : {0U, 2U, 3U}) EXPECT_TRUE(known(tokens[kept])) << kept;
  EXPECT_FALSE(known(tokens[1]));
}

TEST_F(TokenVerifierTest, MoreTokensThanFitAreVerifiedAgain) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::string name = "user" + std::to_string(i);
      const auto found = ask(token(name, testkit::kTokenTime + i), static_cast<std::uint64_t>(i));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->key, controller.identify(name).key);
    }
    now += milliseconds(1000);
  }
  EXPECT_GE(counters.verified.get(), 64U);  // 80 asked, at most 16 remembered
}

}  // namespace
}  // namespace weir::gateway
