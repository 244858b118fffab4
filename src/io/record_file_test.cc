#include "io/record_file.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::inline v0::io {
namespace {

struct RecordFileTest : ::testing::Test {
  RecordFileTest() {
    std::string name = "/tmp/weir-record-XXXXXX";
    folder = ::mkdtemp(name.data());
    path = folder + "/file";
  }
  ~RecordFileTest() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string content() const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  std::string folder;
  std::string path;
};

TEST_F(RecordFileTest, HasAllOfItsBytesFromTheStartAndIsPrivate) {
  auto file = RecordFile::create(path, 100'000);
  ASSERT_TRUE(file);
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_size, 100'000);
  EXPECT_GE(facts.st_blocks * 512, 100'000) << "allocated, not sparse";
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_TRUE(file->write(10, "hello"));
  std::array<char, 5> back{};
  EXPECT_EQ(file->read(10, back).value(), 5U);
  EXPECT_EQ(std::string_view(back.data(), 5), "hello");
  EXPECT_EQ(file->read(99'998, back).value(), 2U) << "the end";
}

TEST_F(RecordFileTest, WhatCannotBeCreatedIsAnError) {
  EXPECT_EQ(RecordFile::create(folder + "/no/file", 10).error(),
            std::errc::no_such_file_or_directory);
  ASSERT_TRUE(RecordFile::create(path, 10));
  EXPECT_EQ(RecordFile::create(path, 10).error(), std::errc::file_exists);
  EXPECT_FALSE(RecordFile::create(folder + "/huge", std::uint64_t{1} << 60U)) << "a full disk";
  EXPECT_FALSE(std::filesystem::exists(folder + "/huge")) << "nothing is left of it";
}

TEST_F(RecordFileTest, WhatWasWrittenSurvivesAKilledProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = RecordFile::create(path, 64);
    if (file) static_cast<void>(file->write(0, "written"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content().substr(0, 7), "written");
  EXPECT_EQ(content().size(), 64U);
}

}  // namespace
}  // namespace weir::inline v0::io
