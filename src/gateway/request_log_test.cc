#include "request_log.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "head_testing.h"

namespace weir::gateway {
namespace {

using nlohmann::json;
using std::chrono::microseconds;

RequestNote noted(const TestHead& head, std::string_view path) {
  RequestNote note;
  Caller caller;
  caller.client = parse_ip("192.0.2.7");
  note.take_id(head.list(), "made-up-id");
  note.take(head.request("GET", path), caller);
  return note;
}

LogEntry entry_of(const RequestNote& note, std::uint16_t status) {
  return {.note = note,
          .status = status,
          .upstream = "app",
          .endpoint = "127.0.0.1:3000",
          .reason = {},
          .aborted = {},
          .attempts = 1};
}

std::string line_of(const LogEntry& entry, AccessLogFormat format = AccessLogFormat::kJson) {
  std::array<char, 2048> out;
  return std::string(format_log_entry(entry, "2024-01-02T03:04:05Z", format, out));
}

TEST(RequestLog, ALineIsJsonWithEverythingWorthKnowing) {
  const TestHead head;
  RequestNote note = noted(head, "/a/b?token=secret");
  note.take_actor({.identity = {.key = {.low = 7, .high = 1}, .label = "alice"},
                   .kind = IdentityKind::kHeader});
  LogEntry entry = entry_of(note, 200);
  entry.priority = Priority::kHigh;
  entry.total = microseconds(12345);
  entry.upstream_time = microseconds(10001);
  entry.bytes_out = 99;
  const json line = json::parse(line_of(entry));
  EXPECT_EQ(line["time"], "2024-01-02T03:04:05Z");
  EXPECT_EQ(line["id"], "made-up-id");
  EXPECT_EQ(line["client"], "192.0.2.7");
  EXPECT_EQ(line["protocol"], "http/1.1");
  EXPECT_EQ(line["method"], "GET");
  EXPECT_EQ(line["host"], "example.com");
  EXPECT_EQ(line["path"], "/a/b");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["class"], "high");
  EXPECT_EQ(line["upstream"], "app");
  EXPECT_EQ(line["actor"], "alice");
  EXPECT_EQ(line["actor_by"], "header");
  EXPECT_DOUBLE_EQ(line["ms"], 12.345);
  EXPECT_DOUBLE_EQ(line["upstream_ms"], 10.001);
  EXPECT_EQ(line["bytes_out"], 99);
  EXPECT_FALSE(line.contains("reason"));
}

TEST(RequestLog, TheTextFormHasTheSameFields) {
  const TestHead head;
  RequestNote note = noted(head, "/a b");
  note.limit = 44;
  LogEntry entry = entry_of(note, 503);
  entry.reason = "overload";
  entry.waited = microseconds(50125);
  entry.attempts = 2;
  entry.late_endpoint = "127.0.0.1:3001";
  entry.hedged_after = microseconds(5250);
  EXPECT_EQ(line_of(entry, AccessLogFormat::kText),
            "time=2024-01-02T03:04:05Z id=made-up-id client=192.0.2.7 protocol=http/1.1 method=GET "
            "host=example.com path=\"/a b\" status=503 class=normal upstream=app "
            "endpoint=127.0.0.1:3000 reason=overload ms=0.000 wait_ms=50.125 limit=44 attempts=2 "
            "hedge=won late_endpoint=127.0.0.1:3001 hedged_after_ms=5.250 bytes_in=0 bytes_out=0");
  const json line = json::parse(line_of(entry));
  EXPECT_EQ(line["limit"], 44);
  EXPECT_EQ(line["attempts"], 2);
  EXPECT_DOUBLE_EQ(line["wait_ms"], 50.125);
}

TEST(RequestLog, AHedgedRequestTellsWhoWasLateAndWhoWon) {
  const TestHead head;
  const RequestNote note = noted(head, "/");
  LogEntry entry = entry_of(note, 200);
  EXPECT_FALSE(json::parse(line_of(entry)).contains("hedge"));
  entry.late_endpoint = "127.0.0.1:3001";
  entry.hedged_after = microseconds(5250);
  const json won = json::parse(line_of(entry));
  EXPECT_EQ(won["hedge"], "won");
  EXPECT_EQ(won["late_endpoint"], "127.0.0.1:3001");
  EXPECT_EQ(won["hedged_after_ms"], 5.25);
  entry.late_endpoint = entry.endpoint;
  EXPECT_EQ(json::parse(line_of(entry))["hedge"], "lost");
}

TEST(RequestLog, AHedgeThatWasDueAndNotSentHasItsReason) {
  const TestHead head;
  const RequestNote note = noted(head, "/");
  LogEntry entry = entry_of(note, 200);
  entry.hedge_skipped = "budget";
  const json line = json::parse(line_of(entry));
  EXPECT_EQ(line["hedge_skipped"], "budget");
  EXPECT_FALSE(line.contains("hedge"));
}

TEST(RequestLog, TheProtocolIsNamedAsInAlpn) {
  const TestHead head;
  ServerRequest request = head.request("GET", "/");
  for (const auto& [version, name] :
       {std::pair{HttpVersion::k10, "http/1.0"}, std::pair{HttpVersion::k11, "http/1.1"},
        std::pair{HttpVersion::k2, "h2"}}) {
    request.version = version;
    RequestNote note;
    note.take(request, Caller{});
    EXPECT_EQ(json::parse(line_of(entry_of(note, 200)))["protocol"], name);
  }
}

TEST(RequestLog, NoSecretEntersALine) {
  const TestHead head{
      {"authorization", "Bearer s3cret"}, {"x-api-key", "s3cret"}, {"cookie", "session=s3cret"}};
  RequestNote note = noted(head, "/login?password=s3cret#s3cret");
  note.take_actor(
      {.identity = {.key = {.low = 7, .high = 1}, .label = {}}, .kind = IdentityKind::kBearer});
  const std::string line = line_of(entry_of(note, 200));
  EXPECT_EQ(line.find("s3cret"), std::string::npos) << line;
  EXPECT_EQ(json::parse(line)["actor"], "7");
}

TEST(RequestLog, HostileBytesAreEscaped) {
  const TestHead head{{"x-request-id", "a\"b\\c\xff\n"}};
  const RequestNote note = noted(head, "/x\\y\"z");
  const std::string line = line_of(entry_of(note, 200));
  const json parsed = json::parse(line);
  EXPECT_EQ(parsed["path"], "/x\\y\"z");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parsed["id"], "a\"b\\c\u00ff\n");
}

TEST(RequestLog, LongTextsAreCutAndTheLineStaysWhole) {
  const std::string long_id(5000, '\x01');
  const TestHead head{{"x-request-id", long_id}};
  const std::string path = "/" + std::string(8000, 'p');
  const RequestNote note = noted(head, path);
  const json parsed = json::parse(line_of(entry_of(note, 200)));
  EXPECT_EQ(parsed["path"].get<std::string>().size(), 120U);
  EXPECT_EQ(parsed["id"].get<std::string>().size(), 128U);
  EXPECT_EQ(note.request_id(), "") << "half an id is another id";
  EXPECT_EQ(noted(TestHead{{"x-request-id", "own"}}, "/").request_id(), "own");
  EXPECT_EQ(noted(TestHead{}, "/").request_id(), "made-up-id");
}

class RequestLogModes : public ::testing::Test {
 protected:
  bool wants(AccessLog mode, const LogEntry& entry, std::int64_t second = 1) {
    log.set_rules({.mode = mode, .sample = 0.25});
    return log.wants(entry, second);
  }
  LogEntry refused() {
    LogEntry entry = entry_of(note, 503);
    entry.reason = "overload";
    entry.attempts = 0;
    return entry;
  }

  TestHead head;
  RequestNote note = noted(head, "/");
  RequestLog log{nullptr, Rng(3)};
};

TEST_F(RequestLogModes, ErrorsMeansFailuresAndBrokenAnswers) {
  EXPECT_FALSE(wants(AccessLog::kErrors, entry_of(note, 200)));
  EXPECT_FALSE(wants(AccessLog::kErrors, entry_of(note, 404)));
  EXPECT_TRUE(wants(AccessLog::kErrors, entry_of(note, 500)));
  LogEntry broken = entry_of(note, 200);
  broken.aborted = "client";
  EXPECT_TRUE(wants(AccessLog::kErrors, broken));
  EXPECT_TRUE(wants(AccessLog::kAll, entry_of(note, 200)));
  EXPECT_FALSE(wants(AccessLog::kOff, entry_of(note, 500)));
}

TEST_F(RequestLogModes, RefusalsCannotFloodTheLog) {
  int logged = 0;
  for (int i = 0; i < 10000; ++i) logged += wants(AccessLog::kErrors, refused(), 5) ? 1 : 0;
  EXPECT_EQ(logged, static_cast<int>(RequestLog::kRefusalsPerSecond));
  EXPECT_TRUE(wants(AccessLog::kErrors, refused(), 6));
}

TEST_F(RequestLogModes, AFloodOfOneReasonHidesNoOtherReasonAndNoOtherUpstream) {
  for (int i = 0; i < 1000; ++i) static_cast<void>(wants(AccessLog::kErrors, refused(), 5));
  ASSERT_FALSE(wants(AccessLog::kErrors, refused(), 5));
  LogEntry other_reason = refused();
  other_reason.reason = "peer_limit";
  EXPECT_TRUE(wants(AccessLog::kErrors, other_reason, 5));
  LogEntry other_upstream = refused();
  other_upstream.upstream = "web";
  EXPECT_TRUE(wants(AccessLog::kErrors, other_upstream, 5));
}

TEST(RequestLog, TimesHaveMilliseconds) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("weir_times_" + std::to_string(::getpid()));
  auto writer = io::LineWriter::open({.path = path});
  ASSERT_TRUE(writer.has_value());
  RequestLog log(writer->get(), Rng(1));
  log.set_rules({.mode = AccessLog::kAll});
  const TestHead head;
  const RequestNote note = noted(head, "/");
  log.record(entry_of(note, 200));
  (*writer)->stop();
  std::ifstream file(path);
  EXPECT_THAT(json::parse(file)["time"].get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:..[.][0-9][0-9][0-9]Z"));
  std::filesystem::remove(path);
}

TEST_F(RequestLogModes, SampledIsTheShareAskedFor) {
  int logged = 0;
  for (int i = 0; i < 10000; ++i) logged += wants(AccessLog::kSampled, entry_of(note, 200)) ? 1 : 0;
  EXPECT_NEAR(logged, 2500, 200);
}

}  // namespace
}  // namespace weir::gateway
