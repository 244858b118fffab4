#include "discovery/file_source.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "discovery/source_testing.h"

namespace weir::inline v0::upstream {
namespace {

struct FileRun {
  FileRun() {
    std::string pattern = testing::TempDir() + "weir_file_source_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    source = std::make_unique<FileSource>("file:" + path(), path(), std::chrono::milliseconds(2));
  }
  ~FileRun() {
    source.reset();
    std::filesystem::remove_all(folder);
  }
  FileRun(const FileRun&) = delete;
  FileRun& operator=(const FileRun&) = delete;

  [[nodiscard]] std::string path() const { return folder + "/api"; }
  void replace(const std::string& text) const {
    std::ofstream(path() + ".new") << text;
    std::filesystem::rename(path() + ".new", path());
  }
  void until_text(const std::string& wanted) {
    run_until(loop, sink, [&] { return sink.lists > 0 && sink.text() == wanted; });
  }
  void until_error(const std::string& wanted) {
    run_until(loop, sink, [&] { return !sink.errors.empty() && sink.errors.back() == wanted; });
  }

  std::string folder;
  io::Loop loop;
  RecordingSink sink;
  std::unique_ptr<FileSource> source;
};

TEST(FileSource, FollowsAFileThatIsReplaced) {
  FileRun run;
  run.replace("10.0.0.1:80\n10.0.0.2:80 weight=3 zone=b\n");
  run.source->start(run.loop, run.sink);
  EXPECT_EQ(run.sink.lists, 0) << "not from within start()";
  run.until_text("10.0.0.1:80 10.0.0.2:80*3@b ");
  run.replace("10.0.0.2:80 weight=3 zone=b drain=true\n");
  run.until_text("10.0.0.2:80*3@b! ");
  run.replace("# none\n");
  run.until_text("");
  EXPECT_TRUE(run.sink.errors.empty());
}

TEST(FileSource, AnotherOrderIsNoChange) {
  FileRun run;
  run.replace("10.0.0.1:80\n10.0.0.2:80\n");
  run.source->start(run.loop, run.sink);
  run.until_text("10.0.0.1:80 10.0.0.2:80 ");
  const TimePoint before = run.source->status().succeeded;
  run.replace("10.0.0.2:80\n10.0.0.1:80\n");
  run_until(run.loop, run.sink, [&] { return run.source->status().succeeded != before; });
  EXPECT_EQ(run.sink.lists, 1);
}

TEST(FileSource, ABadOrMissingFileRemovesNothing) {
  FileRun run;
  run.replace("10.0.0.1:80\n");
  run.source->start(run.loop, run.sink);
  run.until_text("10.0.0.1:80 ");
  run.replace("10.0.0.1:80\n10.0.0.2:80 weight=0\n");
  run.until_error(run.path() + ": line 2: weight=0: allowed is 1 to 65535");
  EXPECT_EQ(run.sink.text(), "10.0.0.1:80 ");
  std::filesystem::remove(run.path());
  run.until_error(run.path() + ": No such file or directory");
  EXPECT_EQ(run.sink.text(), "10.0.0.1:80 ");
  EXPECT_EQ(run.source->status().error, run.sink.errors.back());
  EXPECT_EQ(run.source->status().endpoints, 1U);
  run.replace("10.0.0.3:80\n");
  run.until_text("10.0.0.3:80 ");
  run.until_error("");
  EXPECT_EQ(run.sink.errors.size(), 3U) << "each told once";
}

TEST(FileSource, MayStartWithoutItsFile) {
  FileRun run;
  run.source->start(run.loop, run.sink);
  run.until_error(run.path() + ": No such file or directory");
  EXPECT_FALSE(run.source->status().known);
  run.replace("10.0.0.1:80\n");
  run.until_text("10.0.0.1:80 ");
}

}  // namespace
}  // namespace weir::inline v0::upstream
