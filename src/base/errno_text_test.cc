#include "weir/base/errno_text.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ErrnoText, IsWhatTheKernelSaysInTheMiddleOfASentence) {
  EXPECT_EQ(errno_text(std::errc::no_such_file_or_directory), "no such file or directory");
  EXPECT_EQ(errno_text(std::errc::address_in_use), "address already in use");
  EXPECT_EQ(errno_text(std::errc::permission_denied), "permission denied");
}

}  // namespace
}  // namespace weir
