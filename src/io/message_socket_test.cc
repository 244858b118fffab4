#include "io/message_socket.h"

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::inline v0::io {
namespace {

constexpr MessageBounds kMessageBounds{.bytes_max = 64, .descriptors_max = 4};

struct MessagePair {
  MessagePair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    a = Fd(fds[0]);
    b = Fd(fds[1]);
  }
  Fd a;
  Fd b;
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct MessageSocketFile : testing::Test {
  std::string folder = testing::TempDir() + "message_socket_" + std::to_string(::getpid());
  std::string path = folder + "/take.sock";
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
};

TEST(MessageSocket, DescriptorsArriveWithTheMessageTheyWereSentWith) {
  MessagePair pair;
  int pipe_ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const Fd read_end(pipe_ends[0]);
  Fd write_end(pipe_ends[1]);
  const int sent[] = {write_end.get()};
  ASSERT_TRUE(send_message(pair.a.get(), "one", sent).has_value());
  ASSERT_TRUE(send_message(pair.a.get(), "two").has_value());
  write_end.reset();
  const auto first = receive_message(pair.b.get(), kMessageBounds);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->bytes, "one");
  ASSERT_EQ(first->descriptors.size(), 1U);
  EXPECT_EQ(::fcntl(first->descriptors[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::write(first->descriptors[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1) << "the same pipe";
  const auto second = receive_message(pair.b.get(), kMessageBounds);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->bytes, "two");
  EXPECT_TRUE(second->descriptors.empty());
}

TEST(MessageSocket, NothingThereAndAClosedPeerAreTold) {
  MessagePair pair;
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds).error(), IoError::kAgain);
  EXPECT_FALSE(await_message(pair.b.get(), Duration(0)));
  pair.a.reset();
  EXPECT_TRUE(await_message(pair.b.get(), std::chrono::seconds(10)));
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds).error(), IoError::kEof);
  EXPECT_EQ(send_message(pair.b.get(), "x").error(), IoError::kReset);
}

TEST(MessageSocket, WhatExceedsABoundIsRefusedAndItsDescriptorsAreClosed) {
  MessagePair pair;
  const std::size_t before = open_descriptors();
  const std::vector<int> five(5, pair.a.get());
  ASSERT_TRUE(send_message(pair.a.get(), "many", five).has_value());
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds).error(), IoError::kInvalid);
  ASSERT_TRUE(send_message(pair.a.get(), std::string(65, 'x'), std::span(five).first(1)));
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds).error(), IoError::kInvalid);
  ASSERT_TRUE(send_message(pair.a.get(), "none wanted", std::span(five).first(1)).has_value());
  const MessageBounds none{.bytes_max = 64, .descriptors_max = 0};
  EXPECT_EQ(receive_message(pair.b.get(), none).error(), IoError::kInvalid);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(MessageSocket, AFullQueueOfUnreadMessagesDoesNotBlockTheSender) {
  MessagePair pair;
  const std::string text(1024, 'x');
  Result<void, IoError> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = send_message(pair.a.get(), text);
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error(), IoError::kAgain);
}

TEST(MessageSocket, AfterRefusingWhatWasSentBeforeIsStillReadAndLaterSendsFail) {
  MessagePair pair;
  ASSERT_TRUE(send_message(pair.a.get(), "before").has_value());
  refuse_messages(pair.b.get());
  EXPECT_EQ(send_message(pair.a.get(), "after").error(), IoError::kReset);
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds)->bytes, "before");
  EXPECT_EQ(receive_message(pair.b.get(), kMessageBounds).error(), IoError::kEof);
}

TEST(MessageSocket, ThePeerIsKnownByItsUserAndMayCommandIfItIsTheSame) {
  const MessagePair pair;
  const auto peer = peer_process(pair.a.get());
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->user, ::geteuid());
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_TRUE(may_command(*peer));
  EXPECT_TRUE(may_command({.user = 0, .pid = 1}));
  EXPECT_FALSE(may_command({.user = ::geteuid() + 1, .pid = 1}));
}

TEST_F(MessageSocketFile, OnlyTheOwnerMayConnectAndTheKernelSaysWho) {
  const auto listening = listen_for_messages(path);
  ASSERT_TRUE(listening.has_value()) << name_of(listening.error());
  struct stat info {};
  ASSERT_EQ(::lstat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const auto client = dial_for_messages(path);
  ASSERT_TRUE(client.has_value());
  ASSERT_TRUE(send_message(client->get(), "hello").has_value());
  const Fd accepted(::accept(listening->get(), nullptr, nullptr));
  EXPECT_EQ(receive_message(accepted.get(), kMessageBounds)->bytes, "hello");
  EXPECT_EQ(peer_process(accepted.get())->pid, ::getpid());
}

TEST_F(MessageSocketFile, AStaleFileIsReplacedAndALivingOneIsKept) {
  EXPECT_EQ(dial_for_messages(path).error(), IoError::kRefused) << "no file";
  static_cast<void>(*listen_for_messages(path));  // closed at once: its file stays
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(dial_for_messages(path).error(), IoError::kRefused) << "nobody listens";
  const auto living = listen_for_messages(path);
  ASSERT_TRUE(living.has_value()) << "the stale file is replaced";
  EXPECT_EQ(listen_for_messages(path).error(), IoError::kInUse);
  EXPECT_TRUE(dial_for_messages(path).has_value()) << "the living one was not removed";
}

TEST_F(MessageSocketFile, AFileThatIsNoSocketIsNotRemoved) {
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  EXPECT_EQ(listen_for_messages(path).error(), IoError::kInUse);
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(MessageSocketFile, ManyWhoAreNotAcceptedDoNotBlockTheNext) {
  const auto listening = listen_for_messages(path);
  ASSERT_TRUE(listening.has_value());
  std::vector<Fd> waiting;
  Result<Fd, IoError> next = dial_for_messages(path);
  for (int i = 0; i < 64 && next; ++i) {
    waiting.push_back(std::move(*next));
    next = dial_for_messages(path);
  }
  ASSERT_FALSE(next.has_value()) << "the queue is bounded";
  EXPECT_EQ(next.error(), IoError::kAgain) << "not the same as nobody there";
}

}  // namespace
}  // namespace weir::inline v0::io
