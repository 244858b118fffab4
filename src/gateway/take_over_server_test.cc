// A running process whose successors fail, and others who connect to its socket.
#include "gateway/take_over_server.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/take_over_client.h"
#include "gateway_testing.h"
#include "take_over_message.h"
#include "take_over_testing.h"

namespace weir::inline v0::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testkit::eventually;
using testkit::Predecessor;

constexpr io::MessageBounds kAnswerBounds{.bytes_max = kTakeOverBytesMax, .descriptors_max = 128};

/// What is answered to these bytes; the text of the error if nothing is.
std::string answer_to(const std::string& path, const std::string& bytes) {
  const auto control = io::dial_for_messages(path);
  if (!control) return std::string(name_of(control.error()));
  static_cast<void>(io::send_message(control->get(), bytes));
  if (!io::await_message(control->get(), seconds(10))) return "silence";
  const auto answer = io::receive_message(control->get(), kAnswerBounds);
  if (!answer) return std::string(name_of(answer.error()));
  const auto decoded = decode_take_over(answer->bytes);
  return decoded ? decoded->reason : std::string(name_of(decoded.error()));
}

TEST(TakeOverServer, ASuccessorThatEndsBeforeItIsReadyChangesNothing) {
  Predecessor old;
  old.listen(SocketRole::kListen, "127.0.0.1:0");
  for (int i = 1; i <= 3; ++i) {
    { ASSERT_TRUE(TakeOver::begin(old.path, seconds(10)).has_value()); }
    EXPECT_TRUE(eventually([&] { return old.failures().size() == static_cast<std::size_t>(i); }));
  }
  EXPECT_THAT(old.failures()[0], HasSubstr("did not take over: it ended before it was ready"));
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value()) << "the next one can";
  EXPECT_EQ(*over->finish({true}, seconds(10)), TakeOver::End::kReleased);
}

TEST(TakeOverServer, ASuccessorThatIsNotReadyInTimeMustNotBegin) {
  Predecessor old([](TakeOverServer::Setup& setup) { setup.ready_within = milliseconds(10); });
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value());
  EXPECT_TRUE(eventually([&] { return old.failures().size() == 1; }));
  const auto end = over->finish({}, seconds(10));
  ASSERT_FALSE(end.has_value());
  EXPECT_THAT(end.error().message, HasSubstr("serves on: it was not ready in time"));
  EXPECT_FALSE(old.released);
}

TEST(TakeOverServer, TwoCannotTakeOverAtOnce) {
  Predecessor old;
  auto first = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(first.has_value());
  const auto second = TakeOver::begin(old.path, seconds(10));
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("another take-over is in progress"));
  EXPECT_EQ(*first->finish({}, seconds(10)), TakeOver::End::kReleased);
}

TEST(TakeOverServer, AnswersNonsenseWithItsReasonAndGoesOn) {
  Predecessor old;
  struct Case {
    std::string bytes;
    const char* answer;
  };
  const std::vector<Case> cases = {
      {"GET / HTTP/1.1\r\n\r\n", "a message that is not of a take-over"},
      {std::string("weir\0\1\1\1", 8), "a message that is not of a take-over"},
      {std::string("weir\0\7\1", 7), "this process speaks version 1 of the take-over, not 7"},
      {encode({.kind = TakeOverKind::kReady}), "a message that does not belong here"},
      {encode({.kind = TakeOverKind::kReleased}), "a message that does not belong here"},
      {std::string(kTakeOverBytesMax, 'x'), "a message that is too large"}};
  for (const Case& one : cases) EXPECT_THAT(answer_to(old.path, one.bytes), HasSubstr(one.answer));
  EXPECT_TRUE(old.failures().empty()) << "nobody had the sockets";
  EXPECT_FALSE(old.released);
  EXPECT_TRUE(TakeOver::begin(old.path, seconds(10)).has_value());
}

TEST(TakeOverServer, ASuccessorThatSendsTooMuchIsNamedForIt) {
  Predecessor old;
  const auto control = io::dial_for_messages(old.path);
  ASSERT_TRUE(control.has_value());
  ASSERT_TRUE(io::send_message(control->get(), encode({.kind = TakeOverKind::kHello})).has_value());
  EXPECT_TRUE(eventually([&] { return old.begun == 1; }));
  ASSERT_TRUE(io::send_message(control->get(), std::string(8192, 'x')).has_value());
  EXPECT_TRUE(eventually([&] { return old.failures().size() == 1; }));
  EXPECT_THAT(old.failures()[0], HasSubstr("did not take over: a message that is too large"));
}

TEST(TakeOverServer, WhoSaysItTookOtherSocketsThanItGotIsRefused) {
  Predecessor old;
  old.listen(SocketRole::kListen, "127.0.0.1:0");
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value());
  EXPECT_FALSE(over->finish({true, true, true}, seconds(10)).has_value());
  EXPECT_FALSE(old.released);
}

TEST(TakeOverServer, DescriptorsThatAreSentToItAreNotKept) {
  Predecessor old;
  const auto control = io::dial_for_messages(old.path);
  ASSERT_TRUE(control.has_value());
  const int own[] = {control->get()};
  ASSERT_TRUE(io::send_message(control->get(), encode({.kind = TakeOverKind::kHello}), own));
  ASSERT_TRUE(io::await_message(control->get(), seconds(10)));
  const auto answer = io::receive_message(control->get(), kAnswerBounds);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->descriptors.empty());
  EXPECT_THAT(decode_take_over(answer->bytes)->reason, HasSubstr("holds descriptors"));
  EXPECT_EQ(old.begun, 0);
}

TEST(TakeOverServer, ManyWhoSayNothingAreBoundedAndEndInTime) {
  Predecessor old([](TakeOverServer::Setup& setup) { setup.hello_within = milliseconds(50); });
  std::vector<io::Fd> silent;
  for (int i = 0; i < 20; ++i) {
    auto one = io::dial_for_messages(old.path);
    if (one) silent.push_back(std::move(*one));
  }
  for (const io::Fd& one : silent) {
    EXPECT_TRUE(io::await_message(one.get(), seconds(10))) << "it is told, or the end comes";
  }
  EXPECT_TRUE(eventually([&] { return TakeOver::begin(old.path, seconds(10)).has_value(); }));
}

TEST(TakeOverServer, WhoAsksAfterATakeOverIsAnsweredByTheSuccessor) {
  Predecessor old;
  auto over = TakeOver::begin(old.path, seconds(10));
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(*over->finish({}, seconds(10)), TakeOver::End::kReleased);
  EXPECT_TRUE(eventually([&] { return old.released.load(); }));
  const auto late = io::dial_for_messages(old.path);
  ASSERT_TRUE(late.has_value()) << "the old one still has the socket, but accepts nobody";
  ASSERT_TRUE(io::send_message(late->get(), encode({.kind = TakeOverKind::kHello})).has_value());
  const Predecessor successor({}, over->take_listener());
  ASSERT_TRUE(io::await_message(late->get(), seconds(10)));
  EXPECT_EQ(decode_take_over(io::receive_message(late->get(), kAnswerBounds)->bytes)->kind,
            TakeOverKind::kSockets);
}

}  // namespace
}  // namespace weir::inline v0::gateway
