#include "io/file_watch.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace weir::inline v0::io {
namespace {

struct Folder {
  Folder() {
    std::string pattern = testing::TempDir() + "weir_file_watch_XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + '/' + name) << text;
  }
  std::string path;
};

TEST(FileWatch, SeesAReplacedFile) {
  const Folder folder;
  folder.write("list", "one");
  FileWatch watch(folder.path + "/list");
  EXPECT_TRUE(watch.changed()) << "never read";
  EXPECT_EQ(watch.read(100).value_or("?"), "one");
  EXPECT_FALSE(watch.changed());
  folder.write("list.new", "two");  // the same size
  std::filesystem::rename(folder.path + "/list.new", folder.path + "/list");
  EXPECT_TRUE(watch.changed());
  EXPECT_EQ(watch.read(100).value_or("?"), "two");
  EXPECT_FALSE(watch.changed());
}

TEST(FileWatch, SeesALinkThatLeadsElsewhere) {
  const Folder folder;
  folder.write("a", "one");
  folder.write("b", "two");
  std::filesystem::create_symlink("a", folder.path + "/list");
  FileWatch watch(folder.path + "/list");
  EXPECT_EQ(watch.read(100).value_or("?"), "one");
  std::filesystem::create_symlink("b", folder.path + "/next");
  std::filesystem::rename(folder.path + "/next", folder.path + "/list");
  EXPECT_TRUE(watch.changed());
  EXPECT_EQ(watch.read(100).value_or("?"), "two");
}

TEST(FileWatch, AMissingFileIsAnErrorUntilItIsBack) {
  const Folder folder;
  FileWatch watch(folder.path + "/list");
  EXPECT_EQ(watch.read(100).error(), "No such file or directory");
  EXPECT_TRUE(watch.changed());
  folder.write("list", "");
  EXPECT_EQ(watch.read(100).value_or("?"), "");
  EXPECT_FALSE(watch.changed());
  std::filesystem::remove(folder.path + "/list");
  EXPECT_TRUE(watch.changed());
}

TEST(FileWatch, AFolderAPipeAndALargeFileAreErrors) {
  const Folder folder;
  FileWatch itself(folder.path);
  EXPECT_EQ(itself.read(1 << 20).error(), "it is not a regular file");
  ASSERT_EQ(::mkfifo((folder.path + "/pipe").c_str(), 0600), 0);
  FileWatch pipe(folder.path + "/pipe");
  EXPECT_EQ(pipe.read(100).error(), "it is not a regular file") << "and it does not block";
  folder.write("list", std::string(101, 'x'));
  FileWatch large(folder.path + "/list");
  EXPECT_EQ(large.read(100).error(), "it is larger than 100 bytes");
  folder.write("list", std::string(100, 'x'));
  EXPECT_EQ(large.read(100).value_or("").size(), 100U);
}

}  // namespace
}  // namespace weir::inline v0::io
