#include "jwt.h"

#include <string>

#include <gtest/gtest.h>

#include "jwt_testing.h"

namespace weir::gateway {
namespace {

using io::PublicKey;
using io::TestSigner;
using testkit::base64url;
using testkit::make_jwt;

constexpr const char* kRs256 = R"({"alg":"RS256","typ":"JWT"})";
constexpr const char* kEs256 = R"({"alg":"ES256"})";

std::string expiring(std::int64_t at, std::string_view more = {}) {
  return R"({"sub":"alice","exp":)" + std::to_string(at) + std::string(more) + "}";
}

struct Jwt : testing::Test {
  static const TestSigner& rsa() {
    static const TestSigner signer = TestSigner::rsa();
    return signer;
  }
  static const TestSigner& ec() {
    static const TestSigner signer = TestSigner::ec();
    return signer;
  }
  JwtRules rules{
      .keys = {*PublicKey::from_pem(rsa().public_pem()), *PublicKey::from_pem(ec().public_pem())}};
  JwtScratch scratch;

  /// The name in the token, or what is wrong with it.
  std::string judged(std::string_view token, std::int64_t now = testkit::kTokenTime) {
    const auto found = verify_jwt(token, rules, now, scratch);
    return std::string(found ? found->name : name_of(found.error()));
  }
  std::string judged_claims(std::string_view payload) {
    return judged(make_jwt(ec(), kEs256, payload));
  }
};

TEST_F(Jwt, TokensOfEveryKeyAreVerified) {
  EXPECT_EQ(judged(make_jwt(rsa(), kRs256, expiring(testkit::kTokenTime + 1))), "alice");
  EXPECT_EQ(judged(make_jwt(ec(), kEs256, expiring(testkit::kTokenTime + 1))), "alice");
  EXPECT_EQ(judged(make_jwt(TestSigner::ec(), kEs256, expiring(testkit::kTokenTime + 1))),
            "signature");
}

// The examples of RFC 7515, A.2 and A.3: keys, texts and signatures that others made.
constexpr const char* kRfcRsaKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj\n"
    "NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz\n"
    "P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo\n"
    "9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB\n"
    "EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX\n"
    "FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp\n"
    "oQIDAQAB\n"
    "-----END PUBLIC KEY-----\n";
constexpr const char* kRfcEcKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n"
    "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"
    "-----END PUBLIC KEY-----\n";
// {"iss":"joe",\r\n "exp":1300819380,\r\n "http://example.com/is_root":true}
constexpr const char* kRfcPayload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19y"
    "b290Ijp0cnVlfQ";
constexpr const char* kRfcRsaSignature =
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF"
    "5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK"
    "5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt"
    "FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB"
    "p0igcN_IoypGlUPQGe77Rw";
constexpr const char* kRfcEcSignature =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-K"
    "g6NU1Q";

TEST_F(Jwt, TheExamplesOfRfc7515AreVerified) {
  rules = {.keys = {*PublicKey::from_pem(kRfcRsaKey), *PublicKey::from_pem(kRfcEcKey)},
           .issuer = "joe",
           .claim = "iss"};
  constexpr std::int64_t kBefore = 1'300'819'379;
  const std::string rs256 = std::string("eyJhbGciOiJSUzI1NiJ9.") + kRfcPayload + ".";
  const std::string es256 = std::string("eyJhbGciOiJFUzI1NiJ9.") + kRfcPayload + ".";
  EXPECT_EQ(judged(rs256 + kRfcRsaSignature, kBefore), "joe");
  EXPECT_EQ(judged(es256 + kRfcEcSignature, kBefore), "joe");
  EXPECT_EQ(judged(rs256 + kRfcRsaSignature), "expired");
  EXPECT_EQ(judged(rs256 + kRfcEcSignature, kBefore), "signature");
  EXPECT_EQ(judged(es256 + kRfcRsaSignature, kBefore), "signature");
  for (const std::string& good : {rs256 + kRfcRsaSignature, es256 + kRfcEcSignature}) {
    std::string other = good;
    other[30] = other[30] == 'A' ? 'B' : 'A';  // in the payload
    EXPECT_EQ(judged(other, kBefore), "signature");
  }
}

TEST_F(Jwt, TheKeyDeterminesTheAlgorithm) {
  const std::string claims = expiring(testkit::kTokenTime + 1);
  EXPECT_EQ(judged(make_jwt(rsa(), R"({"alg":"none"})", claims)), "algorithm");
  EXPECT_EQ(judged(make_jwt(rsa(), R"({"alg":"HS256"})", claims)), "algorithm");
  EXPECT_EQ(judged(make_jwt(rsa(), R"({"alg":"rs256"})", claims)), "algorithm");
  EXPECT_EQ(judged(make_jwt(rsa(), R"({"typ":"JWT"})", claims)), "algorithm");
  EXPECT_EQ(judged(make_jwt(rsa(), kEs256, claims)), "signature");
  EXPECT_EQ(judged(make_jwt(rsa(), R"({"alg":"RS256","alg":"none"})", claims)), "malformed");
  EXPECT_EQ(judged(base64url(R"({"alg":"none"})") + "." + base64url(claims) + "."), "algorithm");
  rules.keys.pop_back();
  EXPECT_EQ(judged(make_jwt(ec(), kEs256, claims)), "algorithm");
}

TEST_F(Jwt, TimesHaveAMinuteOfLeeway) {
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime - 59)), "alice");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime - 60)), "expired");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"nbf":1800000060)")), "alice");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"nbf":1800000061)")), "not_yet");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"nbf":"soon")")), "malformed");
  EXPECT_EQ(judged_claims(R"({"sub":"alice"})"), "no_claim");
  EXPECT_EQ(judged_claims(R"({"sub":"alice","exp":"1900000000"})"), "no_claim");
  EXPECT_EQ(judged_claims(R"({"sub":"alice","exp":1e300})"), "alice");
  EXPECT_EQ(judged_claims(R"({"sub":"alice","exp":-1e300})"), "expired");
}

TEST_F(Jwt, IssuerAndAudienceAreComparedIfGiven) {
  rules.issuer = "https://issuer";
  rules.audience = "api";
  const auto with = [&](std::string_view more) {
    return judged_claims(expiring(testkit::kTokenTime + 9, more));
  };
  EXPECT_EQ(with(R"(,"iss":"https:\/\/issuer","aud":"api")"), "alice");
  EXPECT_EQ(with(R"(,"iss":"https://issuer","aud":["web","api"])"), "alice");
  EXPECT_EQ(with(R"(,"iss":"https://issuer2","aud":"api")"), "issuer");
  EXPECT_EQ(with(R"(,"aud":"api")"), "issuer");
  EXPECT_EQ(with(R"(,"iss":"https://issuer","aud":["web"])"), "audience");
  EXPECT_EQ(with(R"(,"iss":"https://issuer","aud":[])"), "audience");
  EXPECT_EQ(with(R"(,"iss":"https://issuer")"), "audience");
}

TEST_F(Jwt, TheClaimThatNamesTheBearerIsAnOption) {
  rules.claim = "tenant";
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"tenant":"gold")")), "gold");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9)), "no_claim");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"tenant":"")")), "no_claim");
  EXPECT_EQ(judged_claims(expiring(testkit::kTokenTime + 9, R"(,"tenant":7)")), "no_claim");
  EXPECT_EQ(judged_claims(
                expiring(testkit::kTokenTime + 9, ",\"tenant\":\"" + std::string(300, 'a') + "\"")),
            std::string(300, 'a'));
}

TEST_F(Jwt, OtherTextsAreMalformed) {
  const std::string good = make_jwt(ec(), kEs256, expiring(testkit::kTokenTime + 9));
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b"), good + ".x",
        good + "=", "=" + good, " " + good, make_jwt(ec(), "{", expiring(testkit::kTokenTime + 9)),
        make_jwt(ec(), R"({"alg":"ES256","crit":["b64"],"b64":false})",
                 expiring(testkit::kTokenTime + 9)),
        make_jwt(ec(), kEs256, "[]"), make_jwt(ec(), kEs256, "")}) {
    EXPECT_EQ(judged(text), "malformed") << text;
  }
  EXPECT_EQ(judged(std::string(kJwtBytesMax + 1, 'a')), "too_long");
  EXPECT_EQ(judged(std::string(kJwtBytesMax, '.')), "malformed");
}

// Otherwise one token had many spellings, each verified and remembered apart.
TEST_F(Jwt, ATokenHasOneSpelling) {
  const std::string good = make_jwt(ec(), kEs256, expiring(testkit::kTokenTime + 9));
  ASSERT_EQ(judged(good), "alice");
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const std::size_t last = kAlphabet.find(good.back());
  ASSERT_EQ(last % 16, 0U) << "64 bytes leave four bits of the last character unused";
  for (std::size_t unused = 1; unused < 16; ++unused) {
    std::string other = good;
    other.back() = kAlphabet[last + unused];
    EXPECT_EQ(judged(other), "malformed") << unused;
  }
}

TEST_F(Jwt, NoChangedTokenIsVerified) {
  const std::string good = make_jwt(ec(), kEs256, expiring(testkit::kTokenTime + 9));
  ASSERT_EQ(judged(good), "alice");
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'A', 'b', '-', '.', '=', '\0'}) {
      std::string changed = good;
      if (changed[i] == c) continue;
      changed[i] = c;
      EXPECT_NE(judged(changed), "alice") << i << c;
    }
  }
}

}  // namespace
}  // namespace weir::gateway
