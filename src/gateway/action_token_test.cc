#include "action_token.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct ActionTokenTest : ::testing::Test {
  ActionTokenTest() : path(::testing::TempDir() + "/token_" + std::to_string(::getpid())) {}
  ~ActionTokenTest() override { ::unlink(path.c_str()); }
  Result<ActionToken, std::string> with(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return ActionToken::read(path);
  }
  std::string path;
};
const std::string kHex(64, 'a');

TEST_F(ActionTokenTest, IsReadInHexOrBase64url) {
  EXPECT_EQ(with(kHex + "\n")->text(), kHex);
  EXPECT_EQ(with(std::string(42, '_') + "-")->text(), std::string(42, '_') + "-");
}

TEST_F(ActionTokenTest, AFileThatOthersMayUseIsRefused) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0666U, 0601U}) {
    const auto token = with(kHex, mode);
    ASSERT_FALSE(token.has_value()) << mode;
    EXPECT_THAT(token.error(), HasSubstr("chmod 600"));
  }
  EXPECT_TRUE(with(kHex, 0400).has_value());
}

TEST_F(ActionTokenTest, ACredentialOfSystemdIsAccepted) {
  const auto token = with(kHex, 0440);
  ASSERT_EQ(token.has_value(), ::geteuid() == 0 && ::getegid() == 0) << "of root only";
  if (!token) return;
  ASSERT_EQ(::chown(path.c_str(), 0, 1), 0);
  EXPECT_FALSE(ActionToken::read(path).has_value()) << "a group of others";
  ASSERT_EQ(::chown(path.c_str(), 1, 0), 0);
  EXPECT_FALSE(ActionToken::read(path).has_value()) << "of another user";
}

TEST_F(ActionTokenTest, AShortOrOtherTextIsRefusedAndNotRepeated) {
  for (const std::string& text :
       {std::string(), std::string("secret"), std::string(63, 'a'), std::string(65, 'a'),
        std::string(42, 'a'), std::string(63, 'a') + "g", std::string(42, 'a') + "+",
        kHex + "\n" + kHex}) {
    const auto token = with(text);
    ASSERT_FALSE(token.has_value()) << text;
    EXPECT_THAT(token.error(), HasSubstr("256 random bits"));
    if (!text.empty()) {
      EXPECT_THAT(token.error(), Not(HasSubstr(text)));
    }
  }
}

TEST_F(ActionTokenTest, AMissingFileAndAFolderAreRefused) {
  EXPECT_THAT(ActionToken::read(path + "x").error(), HasSubstr("no such file"));
  EXPECT_FALSE(ActionToken::read(::testing::TempDir()).has_value());
}

TEST_F(ActionTokenTest, OnlyTheWholeTokenIsRight) {
  const auto token = with(kHex);
  EXPECT_TRUE(token->is(kHex));
  EXPECT_FALSE(token->is(""));
  EXPECT_FALSE(token->is(std::string(63, 'a')));
  EXPECT_FALSE(token->is(kHex + "a"));
  for (std::size_t i = 0; i < kHex.size(); ++i) {
    std::string other = kHex;
    other[i] = 'b';
    EXPECT_FALSE(token->is(other)) << i;
  }
}

}  // namespace
}  // namespace weir::gateway
