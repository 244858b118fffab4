#include "io/service_notice.h"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {
namespace {

/// What a service manager has: a datagram socket at a path, or with an abstract name ('@').
struct NoticeReader {
  explicit NoticeReader(const std::string& name)
      : fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  std::string read() const {
    char text[8192];
    const ssize_t got = ::recv(fd.get(), text, sizeof text, MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(got));
  }
  Fd fd;
};

TEST(ServiceNotice, ArrivesAtAPathAndAtAnAbstractName) {
  const std::string path = testing::TempDir() + "notify_" + std::to_string(::getpid());
  const std::string abstract = "@weir-notify-test-" + std::to_string(::getpid());
  for (const std::string& name : {path, abstract}) {
    const NoticeReader manager(name);
    EXPECT_TRUE(notify_service_manager(name, "READY=1\nSTATUS=fine")) << name;
    EXPECT_EQ(manager.read(), "READY=1\nSTATUS=fine") << name;
  }
  std::filesystem::remove(path);
}

TEST(ServiceNotice, WithoutAReaderNothingHappens) {
  EXPECT_FALSE(notify_service_manager("", "READY=1"));
  EXPECT_FALSE(notify_service_manager("relative/path", "READY=1"));
  EXPECT_FALSE(notify_service_manager("/nonexistent/notify", "READY=1"));
  EXPECT_FALSE(notify_service_manager("/" + std::string(200, 'x'), "READY=1"));
}

TEST(ServiceNotice, IsBoundedAndDoesNotBlockOnAReaderThatStopped) {
  const std::string name = "@weir-notify-full-" + std::to_string(::getpid());
  const NoticeReader manager(name);
  EXPECT_FALSE(notify_service_manager(name, std::string(4097, 'x')));
  EXPECT_EQ(manager.read(), "nothing");
  bool sent = true;
  for (int i = 0; i < 100'000 && sent; ++i) sent = notify_service_manager(name, "STATUS=again");
  EXPECT_FALSE(sent) << "a full queue is not waited for";
}

}  // namespace
}  // namespace weir::inline v0::io
