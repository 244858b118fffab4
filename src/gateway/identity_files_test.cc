#include "identity_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "io/signer_testing.h"

namespace weir::gateway {
namespace {

struct IdentityFilesTest : testing::Test {
  std::string path = testing::TempDir() + "weir_identity_" + std::to_string(::getpid());
  ActorsConfig config;

  void write(std::string_view text) { std::ofstream(path, std::ios::binary) << text; }
  ~IdentityFilesTest() override { std::filesystem::remove(path); }
  std::string fault() {
    const auto files = read_identity_files(config);
    return files ? std::string() : files.error();
  }
};

TEST_F(IdentityFilesTest, WithoutOptionsThereIsNothingToRead) {
  const auto files = read_identity_files(config);
  ASSERT_TRUE(files);
  EXPECT_TRUE(files->jwt.keys.empty());
  EXPECT_FALSE(files->keys);
}

TEST_F(IdentityFilesTest, KeysAreRead) {
  write(io::TestSigner::ec().public_pem());
  config.jwt.keys = {path, path};
  config.jwt.issuer = "me";
  const auto files = read_identity_files(config);
  ASSERT_TRUE(files);
  EXPECT_EQ(files->jwt.keys.size(), 2U);
  EXPECT_EQ(files->jwt.issuer, "me");
}

TEST_F(IdentityFilesTest, AnEmptyFileOfKeysKnowsNobody) {
  write("# none yet\n");
  config.keys_file = path;
  const auto files = read_identity_files(config);
  ASSERT_TRUE(files && files->keys);
  EXPECT_EQ(files->keys->size(), 0U);
}

TEST_F(IdentityFilesTest, FaultsNameOptionFileAndReason) {
  config.keys_file = path;
  EXPECT_EQ(fault(), "actors.keys_file = \"" + path + "\": cannot be read");
  write("hello\n");
  EXPECT_EQ(fault(), "actors.keys_file = \"" + path +
                         "\": line 1: wanted is the SHA-256 of a key (64 hexadecimal digits) and a "
                         "name");
  config.keys_file.clear();
  config.jwt.keys = {path};
  EXPECT_EQ(fault().substr(0, fault().find(';')),
            "actors.jwt.keys = \"" + path + "\": no public key or certificate in PEM");
  write(std::string(70000, 'x'));
  EXPECT_EQ(fault(), "actors.jwt.keys = \"" + path + "\": larger than 65536 bytes");
  config.jwt.keys = {testing::TempDir()};
  EXPECT_EQ(fault(), "actors.jwt.keys = \"" + testing::TempDir() + "\": cannot be read");
}

}  // namespace
}  // namespace weir::gateway
