#include "weir/experimental/io/line_writer.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/experimental/io/fd.h"

namespace weir::io {
namespace {

std::string fresh_path(const char* name) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("weir_line_writer_" + std::to_string(::getpid()) + "_" + name);
  std::filesystem::remove(path);
  return path.string();
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LineWriter, WritesLinesWholeAndInOrder) {
  const std::string path = fresh_path("order");
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string line = "line " + std::to_string(i);
    EXPECT_TRUE((*writer)->write(line));
    expected += line + '\n';
  }
  (*writer)->stop();
  EXPECT_EQ(contents(path), expected);
  EXPECT_EQ((*writer)->stats().written, 1000U);
  EXPECT_EQ((*writer)->stats().dropped, 0U);
  std::filesystem::remove(path);
}

TEST(LineWriter, DropsWholeLinesAndCountsThemWhenThereIsNoRoom) {
  const std::string path = fresh_path("full");
  auto writer = io::LineWriter::open({.path = path, .buffer_bytes = 64});
  ASSERT_TRUE(writer.has_value());
  EXPECT_FALSE((*writer)->write(std::string(64, 'x')));  // with its newline it does not fit
  EXPECT_TRUE((*writer)->write(std::string(63, 'y')));
  (*writer)->stop();
  EXPECT_EQ(contents(path), std::string(63, 'y') + '\n');
  EXPECT_EQ((*writer)->stats().dropped, 1U);
  std::filesystem::remove(path);
}

TEST(LineWriter, EveryLineOfManyThreadsIsWrittenOrCounted) {
  const std::string path = fresh_path("many");
  auto writer = io::LineWriter::open({.path = path, .buffer_bytes = 4096});
  ASSERT_TRUE(writer.has_value());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) static_cast<void>((*writer)->write("0123456789"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  (*writer)->stop();
  const io::LineWriter::Stats stats = (*writer)->stats();
  EXPECT_EQ(stats.written + stats.dropped, 8000U);
  EXPECT_EQ(contents(path).size(), stats.written * 11);
  std::filesystem::remove(path);
}

TEST(LineWriter, ReopensAfterItsFileWasMoved) {
  const std::string path = fresh_path("rotate");
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  static_cast<void>((*writer)->write("before"));
  while (contents(path).empty()) std::this_thread::yield();
  std::filesystem::rename(path, path + ".1");
  EXPECT_TRUE((*writer)->reopen().has_value());
  static_cast<void>((*writer)->write("after"));
  (*writer)->stop();
  EXPECT_EQ(contents(path + ".1"), "before\n");
  EXPECT_EQ(contents(path), "after\n");
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".1");
}

TEST(LineWriter, SaysWhenAFileCannotBeOpened) {
  const auto writer = io::LineWriter::open({.path = "/nowhere/at/all.log"});
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error(), std::errc::no_such_file_or_directory);
}

TEST(LineWriter, StaysWithItsFileWhenTheNextCannotBeOpened) {
  const std::string folder = fresh_path("folder");
  std::filesystem::create_directory(folder);
  auto writer = io::LineWriter::open({.path = folder + "/log"});
  ASSERT_TRUE(writer.has_value());
  std::filesystem::rename(folder, folder + ".1");
  EXPECT_FALSE((*writer)->reopen().has_value());
  static_cast<void>((*writer)->write("still here"));
  (*writer)->stop();
  EXPECT_EQ(contents(folder + ".1/log"), "still here\n");
  std::filesystem::remove_all(folder + ".1");
}

TEST(LineWriter, LosesLinesAndNothingElseWhenItsReaderLeaves) {
  const std::string path = fresh_path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(io::LineWriter::open({.path = path}).has_value()) << "nobody reads it";
  io::Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  reader.reset();
  static_cast<void>((*writer)->write("to nobody"));  // SIGPIPE would end this test
  (*writer)->stop();
  EXPECT_EQ((*writer)->stats().written, 0U);
  EXPECT_EQ((*writer)->stats().dropped, 1U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir::io
