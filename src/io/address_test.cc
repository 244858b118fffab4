#include "weir/experimental/io/address.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "sockaddr.h"

namespace weir::inline v0::io {
namespace {

TEST(SocketName, ReadsAndPrintsWhatOperatorsWrite) {
  for (const char* text :
       {"127.0.0.1:80", "[::1]:8080", "[::]:0", "unix:/run/weir.sock", "unix:@weir"}) {
    const Result<SocketName, IoError> name = parse_socket_name(text);
    ASSERT_TRUE(name.has_value()) << text;
    EXPECT_EQ(name->to_string(), text);
  }
  EXPECT_EQ(parse_socket_name(":443")->to_string(), "[::]:443");
  EXPECT_EQ(parse_socket_name("*:443")->to_string(), "[::]:443");
}

TEST(SocketName, RefusesWhatIsNotOne) {
  const std::string long_path = "unix:/" + std::string(200, 'x');
  for (const char* text :
       {"", "80", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:8o", "[127.0.0.1]:80", "::1:80", "unix:", "256.0.0.1:80", long_path.c_str()}) {
    EXPECT_FALSE(parse_socket_name(text).has_value()) << text;
  }
}

TEST(SocketName, SurvivesTheKernelForm) {
  for (const char* text : {"192.0.2.7:1234", "[2001:db8::7]:65535"}) {
    const SocketName name = *parse_socket_name(text);
    const Result<RawAddress, IoError> raw = to_raw(name);
    ASSERT_TRUE(raw.has_value());
    EXPECT_EQ(from_raw(*raw), name.address);
  }
}

TEST(Address, MappedV4ClientIsAV4Client) {
  const Result<RawAddress, IoError> raw = to_raw(*parse_socket_name("[::ffff:192.0.2.7]:99"));
  ASSERT_TRUE(raw.has_value());
  EXPECT_EQ(from_raw(*raw).to_string(), "192.0.2.7:99");
}

TEST(IoError, NamesWhatErrnoMeans) {
  EXPECT_EQ(io_error_of(EAGAIN), IoError::kAgain);
  EXPECT_EQ(io_error_of(ECONNRESET), IoError::kReset);
  EXPECT_EQ(io_error_of(EPIPE), IoError::kReset);
  EXPECT_EQ(io_error_of(ETIMEDOUT), IoError::kTimedOut);
  EXPECT_EQ(io_error_of(ECONNREFUSED), IoError::kRefused);
  EXPECT_EQ(io_error_of(EHOSTUNREACH), IoError::kUnreachable);
  EXPECT_EQ(io_error_of(EMFILE), IoError::kNoFds);
  EXPECT_EQ(io_error_of(ENFILE), IoError::kNoFds);
  EXPECT_EQ(io_error_of(ENOBUFS), IoError::kNoMemory);
  EXPECT_EQ(io_error_of(EADDRINUSE), IoError::kInUse);
  EXPECT_EQ(io_error_of(EACCES), IoError::kDenied);
  EXPECT_EQ(io_error_of(EINVAL), IoError::kInvalid);
  EXPECT_EQ(io_error_of(EXDEV), IoError::kOther);
  EXPECT_EQ(name_of(IoError::kNoFds), "no_fds");
  EXPECT_EQ(name_of(IoError::kOther), "other");
}

}  // namespace
}  // namespace weir::inline v0::io
