// What proxies of gRPC get wrong with heads, deadlines, metadata and status; frames on real
// sockets. docs/design/gateway.md lists all of these mistakes with their tests.
#include <charconv>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "frame_origin_testing.h"

namespace weir::gateway {
namespace {

using testkit::eventually;
using testkit::FrameConnection;
using testkit::grpc_head;
using testkit::grpc_message;
using testkit::grpc_status;
using testkit::grpc_trailers;
using testkit::GrpcPath;
using testkit::H2Client;
using testkit::Reply;
using testkit::value_of;
namespace wire = testkit::wire;

TEST(GrpcPitfall, TeTrailersReachesTheService) {
  GrpcPath path;
  static_cast<void>(path.say());
  EXPECT_EQ(path.service().whole_call().field("te"), "trailers");
}

TEST(GrpcPitfall, OnlyItsContentTypesAreGrpc) {
  const auto elsewhere = [](config::Config& config) { config.routes[0].path = "/elsewhere"; };
  GrpcPath path({}, elsewhere);
  struct Row {
    const char* type;
    bool grpc;
  };
  constexpr Row kRows[] = {{"application/grpc", true},
                           {"application/grpc+proto", true},
                           {"application/grpc+json", true},
                           {"application/grpc;charset=x", true},
                           {"application/grpc; x", true},
                           {"APPLICATION/GRPC", true},
                           {"Application/Grpc+Proto", true},
                           {"application/grpc-web", false},
                           {"application/grpc-web+proto", false},
                           {"application/grpc-web-text", false},
                           {"application/grpcfoo", false},
                           {"application/grp", false},
                           {"text/plain", false}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.type);
    const Reply& reply = path.client.finish(
        path.client.post("/pkg.Service/Method", {{"content-type", row.type}, {"te", "trailers"}}));
    EXPECT_EQ(reply.status, row.grpc ? 200 : 404);
    EXPECT_EQ(reply.field("grpc-status"), row.grpc ? "12" : "");
  }
}

/// A grpc-timeout in nanoseconds; the longest is 99999999 h.
double nanoseconds(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {{'H', 3600e9}, {'M', 60e9}, {'S', 1e9},
                                                {'m', 1e6},    {'u', 1e3},  {'n', 1}};
  for (const auto& [unit, size] : kUnits) {
    if (text.ends_with(unit)) return std::stod(text) * size;
  }
  ADD_FAILURE() << text;
  return 0;
}

TEST(GrpcPitfall, ADeadlineIsForwardedAndNeverLonger) {
  GrpcPath path;
  std::uint32_t stream = 1;
  for (const char* sent :
       {"99999999H", "24H", "1H", "600M", "100S", "10S", "99999999m", "9999999u", "99999999u"}) {
    SCOPED_TRACE(sent);
    const std::uint32_t id = path.say({{"grpc-timeout", sent}});
    const FrameConnection::Call& call = path.service().whole_call();
    const std::string forwarded = call.field("grpc-timeout");
    EXPECT_LE(forwarded.size(), 9U) << "eight digits and a unit: " << forwarded;
    EXPECT_LE(nanoseconds(forwarded), nanoseconds(sent));
    EXPECT_LE(nanoseconds(forwarded), 24 * 3600e9) << "cut, and not overflowed";
    EXPECT_GT(nanoseconds(forwarded), std::min(nanoseconds(sent), 24 * 3600e9) / 2) << forwarded;
    path.service().send(wire::headers(stream, grpc_status("0")));
    stream += 2;
    EXPECT_EQ(path.client.finish(id).field("grpc-status"), "0");
  }
}

TEST(GrpcPitfall, ADeadlineThatHasPassedDoesNotReachTheService) {
  GrpcPath path;
  for (const char* sent : {"0n", "0H", "00000000m"}) {
    const Reply& reply = path.client.finish(path.say({{"grpc-timeout", sent}}));
    EXPECT_EQ(reply.field("grpc-status"), "4") << sent;
  }
  const std::uint32_t last = path.say({{"last", "yes"}});
  EXPECT_EQ(path.service().whole_call().field("last"), "yes") << "the first one to get there";
  path.service().send(wire::headers(1, grpc_status("0")));
  EXPECT_EQ(path.client.finish(last).field("grpc-status"), "0");
}

TEST(GrpcPitfall, ATimeoutThatIsNotOneIsRefused) {
  GrpcPath path;
  for (const char* bad : {"123456789n", "000000001S", "5", "", "S", "5 S", "5s", "-1S", "+1S",
                          "1.5S", "0x1S", "1SS", "99999999999999999999H"}) {
    const Reply& reply = path.client.finish(path.say({{"grpc-timeout", bad}}));
    EXPECT_EQ(reply.field("grpc-status"), "13") << "'" << bad << "'";
    EXPECT_EQ(reply.field("x-weir-reason"), "bad_grpc_timeout");
  }
  const Reply& twice =
      path.client.finish(path.say({{"grpc-timeout", "1S"}, {"grpc-timeout", "1S"}}));
  EXPECT_EQ(twice.field("grpc-status"), "13");
  EXPECT_FALSE(path.origin.has_caller(0));
}

TEST(GrpcPitfall, ACallWithoutADeadlineGetsNone) {
  GrpcPath path;
  static_cast<void>(path.begin());
  EXPECT_EQ(path.service().accept_call().field("grpc-timeout"), "");
}

TEST(GrpcPitfall, MetadataPassesUnchangedBothWays) {
  const wire::Fields sent = {{"grpc-encoding", "gzip"},
                             {"grpc-accept-encoding", "identity, deflate, gzip"},
                             {"blob-bin", "AAECAwQF+/8"},
                             {"twice", "b"},
                             {"between", "x"},
                             {"twice", "a"},
                             {"user-agent", "grpc-test/1.0"},
                             {"grpc-previous-rpc-attempts", "1"},
                             {"grpc-trace-bin", "AAA="}};
  const wire::Fields head = {
      {"grpc-encoding", "gzip"}, {"init-bin", "/+8"}, {"twice", "2"}, {"twice", "1"}};
  const wire::Fields trailers = {{"grpc-status", "9"},
                                 {"grpc-message", "100%25 of it%0A%E2%9C%93"},
                                 {"grpc-status-details-bin", "CAkSBHRoYXQ"},
                                 {"again", "z"},
                                 {"again", "y"}};
  const auto kept = [](const wire::Fields& all, const wire::Fields& wanted) {
    wire::Fields some;
    for (const auto& field : all) {
      const auto same = [&](const auto& one) { return one.first == field.first; };
      if (std::any_of(wanted.begin(), wanted.end(), same)) some.push_back(field);
    }
    return some;
  };
  GrpcPath path;
  const std::uint32_t id = path.say(sent);
  const FrameConnection::Call& call = path.service().whole_call();
  EXPECT_EQ(kept(call.fields, sent), sent);
  EXPECT_EQ(call.body, grpc_message("hello"));
  path.service().send(wire::headers(1, grpc_head(head), 0));
  path.service().send_data(1, grpc_message("m"));
  path.service().send(wire::headers(1, trailers));
  const Reply& reply = path.client.finish(id);
  EXPECT_EQ(kept(reply.fields, head), head);
  EXPECT_EQ(reply.trailers, trailers);
}

int outcomes_in(const std::string& page, const char* outcome) {
  const std::string line =
      std::string("weir_admission_outcomes_total{scope=\"app\",outcome=\"") + outcome + "\"} ";
  const std::size_t at = page.find(line);
  return at == std::string::npos ? 0 : std::stoi(page.substr(at + line.size()));
}

TEST(GrpcPitfall, TheOutcomeComesFromTrailersOrFromTheHead) {
  GrpcPath path;
  struct Row {
    const char* status;
    const char* outcome;
    wire::Fields more;
  };
  const Row rows[] = {{"0", "ok", {}},
                      {"5", "ok", {}},
                      {"14", "overload", {}},
                      {"14", "ignored", {{"grpc-retry-pushback-ms", "100"}}},
                      {"8", "overload", {{"grpc-message", "overloaded"}}},
                      {"8", "ok", {{"grpc-message", "quota"}}},
                      {"13", "error", {}},
                      {"1", "ignored", {}},
                      {"4", "ignored", {}}};
  const auto count = [&](const char* outcome) {
    return outcomes_in(path.gateway.page("/metrics"), outcome);
  };
  std::uint32_t stream = 1;
  for (const bool in_trailers : {false, true}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(std::string(row.status) + (in_trailers ? " in trailers" : " in the head"));
      const int before = count(row.outcome);
      const std::uint32_t id = path.say();
      FrameConnection& service = path.service();
      service.whole_call();
      if (in_trailers) {
        service.answer(stream, grpc_message("m"), grpc_trailers(row.status, row.more));
      } else {
        service.send(wire::headers(stream, grpc_status(row.status, row.more)));
      }
      stream += 2;
      path.client.finish(id);
      EXPECT_TRUE(eventually([&] { return count(row.outcome) == before + 1; })) << row.outcome;
    }
  }
}

TEST(GrpcPitfall, AnEndWithoutAStatusIsAnErrorAndTheClientIsToldOne) {
  struct Row {
    const char* what;
    std::string frames;
    std::string body;
  };
  const std::string message = grpc_message("m");
  const std::string head = wire::headers(1, grpc_head({{"x-meta", "1"}}), 0);
  const Row rows[] = {
      {"data ends it", head + wire::data(1, message, wire::kEnd), message},
      {"empty data ends it", head + wire::data(1, "", wire::kEnd), ""},
      {"the head ends it", wire::headers(1, grpc_head({{"x-meta", "1"}})), ""},
      {"trailers without one", head + wire::data(1, message) + wire::headers(1, {{"x-end", "1"}}),
       message},
      {"trailers with none", head + wire::headers(1, {{"x-end", "1"}, {"grpc-status", "fine"}}),
       ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    GrpcPath path;
    const std::uint32_t id = path.say();
    FrameConnection& service = path.service();
    service.whole_call();
    service.send(row.frames);
    const Reply& reply = path.client.finish(id);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, row.body);
    EXPECT_FALSE(reply.reset);
    EXPECT_EQ(value_of(reply.fields, "x-meta"), "1");
    EXPECT_EQ(value_of(reply.fields, "grpc-status"), "");
    const auto is_status = [](const auto& field) { return field.first == "grpc-status"; };
    EXPECT_EQ(std::count_if(reply.trailers.begin(), reply.trailers.end(), is_status), 1);
    EXPECT_EQ(value_of(reply.trailers, "grpc-status"), "2");
    EXPECT_EQ(value_of(reply.trailers, "grpc-message"),
              "no_grpc_status: the answer of the service ended without a grpc-status");
    EXPECT_EQ(value_of(reply.trailers, "x-end"),
              std::string_view(row.what).starts_with("trailers") ? "1" : "");
    EXPECT_TRUE(path.gateway.settled());
    EXPECT_EQ(outcomes_in(path.gateway.page("/metrics"), "error"), 1);
    EXPECT_EQ(outcomes_in(path.gateway.page("/metrics"), "ok"), 0);
  }
}

// The unit is given back when all is received, long before the client has read it.
TEST(GrpcPitfall, TheOutcomeOfAnAnswerThatIsNotReadIsThatOfItsTrailers) {
  for (const char* status : {"0", "14", ""}) {
    SCOPED_TRACE(status);
    GrpcPath path({.settings = {}, .open_windows = false});
    std::uint32_t id = 0;
    {
      id = path.say();
      FrameConnection& service = path.service();
      service.whole_call();
      service.send(wire::headers(1, grpc_head(), 0));
      service.send_data(1, std::string(65535 + 2000, 'm'));
      *status != 0 ? service.send(wire::headers(1, grpc_trailers(status)))
                   : service.send(wire::data(1, "", wire::kEnd));
      service.in_step();
    }
    const char* outcome = *status == 0 ? "error" : *status == '0' ? "ok" : "overload";
    EXPECT_TRUE(
        eventually([&] { return outcomes_in(path.gateway.page("/metrics"), outcome) == 1; }));
    EXPECT_FALSE(path.client.reply(id).ended);
    path.client.send(wire::window_update(0, 65535) + wire::window_update(id, 65535));
    EXPECT_EQ(value_of(path.client.finish(id).trailers, "grpc-status"), *status ? status : "2");
    EXPECT_TRUE(path.gateway.settled());
    EXPECT_EQ(outcomes_in(path.gateway.page("/metrics"), outcome), 1);
  }
}

TEST(GrpcPitfall, CancelledAfterOurOwnCancelIsIgnored) {
  GrpcPath path;
  const std::uint32_t id = path.begin();
  FrameConnection& service = path.service();
  service.accept_call();
  path.client.send(wire::rst(id));
  ASSERT_TRUE(service.until([&] { return service.calls[1].reset.has_value(); }));
  service.send(wire::headers(1, grpc_status("1")));  // as a server says that has just heard of it
  ASSERT_TRUE(service.in_step());
  EXPECT_TRUE(path.gateway.settled());
  const std::string page = path.gateway.page("/metrics");
  for (const char* outcome : {"overload", "error"}) {
    EXPECT_NE(page.find(std::string("weir_admission_outcomes_total{scope=\"app\",outcome=\"") +
                        outcome + "\"} 0\n"),
              std::string::npos)
        << outcome;
  }
  const std::uint32_t next = path.say();
  service.whole_call();
  service.send(wire::headers(3, grpc_status("0")));
  EXPECT_EQ(path.client.finish(next).field("grpc-status"), "0") << "the connection serves others";
}

std::size_t bytes_of(const wire::Fields& fields) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : fields) bytes += name.size() + value.size() + 32;  // RFC 9113
  return bytes;
}

TEST(GrpcPitfall, TheFieldsThatAreAddedAreBelow300Bytes) {
  GrpcPath path;
  const wire::Fields more = {{"grpc-timeout", "10S"}, {"user-agent", "u"}};
  const std::uint32_t id = path.say(more);
  const FrameConnection::Call& call = path.service().whole_call();
  const wire::Fields sent = wire::with(
      wire::post(), wire::with({{"content-type", "application/grpc"}, {"te", "trailers"}}, more));
  EXPECT_LT(bytes_of(call.fields), bytes_of(sent) + 300);
  path.service().answer(1, grpc_message("m"), grpc_trailers());
  const Reply& reply = path.client.finish(id);
  EXPECT_LT(bytes_of(reply.fields), bytes_of(grpc_head()) + 300);
  EXPECT_EQ(bytes_of(reply.trailers), bytes_of(grpc_trailers()));
}

TEST(GrpcPitfall, HealthCheckWatchAndReflectionPass) {
  GrpcPath path;
  std::uint32_t stream = 1;
  for (const char* name : {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                           "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    SCOPED_TRACE(name);
    const std::uint32_t id =
        path.client.post(name, {{"content-type", "application/grpc"}, {"te", "trailers"}});
    path.client.send(wire::data(id, grpc_message("\x0a\x01s")));
    FrameConnection& service = path.service();
    FrameConnection::Call& call = service.accept_call();
    EXPECT_EQ(call.field(":path"), name);
    ASSERT_TRUE(service.until([&] { return !call.body.empty(); }));
    service.send(wire::headers(stream, grpc_head(), 0));
    std::string all;
    for (const char* state :
         {"\x08\x01", "\x08\x02", "\x08\x01"}) {  // it watches, and sees changes
      service.send_data(stream, grpc_message(state));
      all += grpc_message(state);
      while (path.client.reply(id).body.size() < all.size() && path.client.next()) {
      }
      EXPECT_EQ(path.client.reply(id).body, all);
    }
    path.client.send(wire::data(id, "", wire::kEnd));
    service.send(wire::headers(stream, grpc_trailers()));
    EXPECT_EQ(value_of(path.client.finish(id).trailers, "grpc-status"), "0");
    stream += 2;
  }
}

TEST(GrpcPitfall, GrpcWebIsPlainHttp) {
  testkit::Origin origin(testkit::echo);  // HTTP/1.1: enough for it
  testkit::RunningGateway gateway(testkit::gateway_config({origin.address()}));
  H2Client client(gateway.port());
  const std::string frame = grpc_message("m") + "\x80" + wire::u32(15) + "grpc-status: 0\r";
  const std::uint32_t id = client.post(
      "/pkg.Service/Method",
      {{"content-type", "application/grpc-web+proto"}, {"grpc-timeout", "not a timeout of ours"}});
  client.send(wire::data(id, frame, wire::kEnd));
  const Reply& reply = client.finish(id);
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.body.find("grpc-timeout: not a timeout of ours\n"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with(frame)) << "the body is not touched";
}

}  // namespace
}  // namespace weir::gateway
