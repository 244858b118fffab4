#include "caller.h"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include "weir/experimental/io/self_signed.h"

#include "testing/store_testing.h"

namespace weir::grpc {
namespace {

using namespace testing;
using ::grpc::StatusCode;

ServerOptions trusting_loopback() {
  ServerOptions options;
  options.methods = {{kGetValue, {.priority = Priority::kLow}}};
  options.trust.addresses = {*parse_ip_range("127.0.0.0/8")};
  return options;
}

std::uint64_t admitted_as(TestServer& server, Priority priority) {
  return server.stats().classes[index_of(priority)].acquired;
}

TEST(Caller, ATrustedCallerNamesTheClass) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(8), trusting_loopback(), *store);
  const auto stub = server.stub();
  EXPECT_TRUE(ask_value(*stub).status.ok());
  EXPECT_TRUE(ask_value(*stub, {.metadata = {{"x-weir-priority", "critical"}}}).status.ok());
  EXPECT_TRUE(ask_value(*stub, {.metadata = {{"x-weir-priority", "urgent"}}}).status.ok());
  EXPECT_EQ(admitted_as(server, Priority::kLow), 1U);
  EXPECT_EQ(admitted_as(server, Priority::kCritical), 1U);
  EXPECT_EQ(admitted_as(server, Priority::kNormal), 1U);  // an unknown class is normal
}

TEST(Caller, WhatAStrangerSaysOfItselfHasNoEffect) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  ServerOptions options = trusting_loopback();
  options.trust.addresses = {*parse_ip_range("10.0.0.0/8"), *parse_ip_range("::/0")};
  TestServer server(limit_of(8), options, *store);
  const auto stub = server.stub();
  EXPECT_TRUE(ask_value(*stub, {.metadata = {{"x-weir-priority", "critical"},
                                             {"x-weir-peer", "node-1"},
                                             {"x-weir-actor", "alice"},
                                             {"x-weir-attempt", "2"}}})
                  .status.ok());
  EXPECT_EQ(admitted_as(server, Priority::kLow), 1U);
  EXPECT_EQ(server.controller().stats().peers, 0U);
  EXPECT_EQ(server.controller().stats().actors, 0U);
}

TEST(Caller, APeerHasSixtyFourCallsAndOthersAreServed) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(256), trusting_loopback(), *store);
  const auto stub = server.stub();
  const CallWish from_b{.metadata = {{"x-weir-peer", "node-b"}}};
  behaviour.desk.hold();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 64; ++i) answers.push_back(get_value(*stub, from_b));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(64));
  const Answer refused = ask_value(*stub, from_b);
  EXPECT_EQ(refused.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.trailer("x-weir-reason"), "peer_limit");
  auto from_c = get_value(*stub, {.metadata = {{"x-weir-peer", "node-c"}}});
  EXPECT_TRUE(behaviour.desk.wait_until_inside(65));
  behaviour.desk.release();
  EXPECT_TRUE(from_c.get().status.ok());
  for (auto& one : answers) EXPECT_TRUE(one.get().status.ok());
  EXPECT_TRUE(server.wait_until_idle());
}

TEST(Caller, ATrustedCallerWithoutANameIsThePeerOfItsAddress) {
  Behaviour behaviour;
  const auto store = make_sync_store(behaviour);
  TestServer server(limit_of(8), trusting_loopback(), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  auto answer = get_value(*stub);
  ASSERT_TRUE(behaviour.desk.wait_until_inside(1));
  const auto peers = server.controller().top_peers(2);
  EXPECT_TRUE(peers.size() == 1 && peers[0].label == "127.0.0.1");
  behaviour.desk.release();
  EXPECT_TRUE(answer.get().status.ok());
}

TEST(Caller, ASecondAttemptIsAdmittedLastAndNotBilledToItsActor) {
  Behaviour behaviour;
  const auto store = make_callback_store(behaviour);
  TestServer server(limit_of(8), trusting_loopback(), *store);
  const auto stub = server.stub();
  behaviour.desk.hold();
  const CallWish first{.metadata = {{"x-weir-priority", "high"}, {"x-weir-actor", "alice"}}};
  CallWish second = first;
  second.metadata.emplace_back("x-weir-attempt", "2");
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(get_value(*stub, first));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(3));
  answers.push_back(get_value(*stub, second));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(4));
  EXPECT_EQ(ask_value(*stub, second).trailer("x-weir-reason"), "overload");  // half of 8
  answers.push_back(get_value(*stub, first));
  ASSERT_TRUE(behaviour.desk.wait_until_inside(5));
  const auto actors = server.controller().top_actors(2);
  ASSERT_EQ(actors.size(), 1U);
  EXPECT_EQ(actors[0].label, "alice");
  EXPECT_EQ(actors[0].in_flight, 4U) << "and not the second attempt that was admitted";
  behaviour.desk.release();
  for (auto& one : answers) EXPECT_TRUE(one.get().status.ok());
}

/// A server that asks its clients for a certificate of one authority.
class Certified : public ::testing::Test {
 protected:
  std::unique_ptr<Store::Stub> stub_as(const std::string& name) {
    const auto own = io::make_certificate({.names = {name}, .signer_pem = authority_.both()});
    ::grpc::SslCredentialsOptions ssl{authority_.certificate_pem, own.key_pem, own.certificate_pem};
    ::grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("server");
    return Store::NewStub(::grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                                      ::grpc::SslCredentials(ssl), arguments));
  }
  void start(ServerOptions options) {
    const auto own = io::make_certificate({.names = {"server"}, .signer_pem = authority_.both()});
    ::grpc::SslServerCredentialsOptions ssl(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    ssl.pem_root_certs = authority_.certificate_pem;
    ssl.pem_key_cert_pairs = {{own.key_pem, own.certificate_pem}};
    server_.emplace(limit_of(8), std::move(options), [&](::grpc::ServerBuilder& builder) {
      builder.AddListeningPort("127.0.0.1:0", ::grpc::SslServerCredentials(ssl), &port_);
      builder.RegisterService(store_.get());
    });
  }

  const io::MadeCertificate authority_ =
      io::make_certificate({.names = {"authority"}, .signer_pem = {}, .authority = true});
  Behaviour behaviour_;
  std::unique_ptr<::grpc::Service> store_ = make_callback_store(behaviour_);
  std::optional<TestServer> server_;
  int port_ = 0;
};

TEST_F(Certified, ACertificateProvesAPeerAndAnotherOneAnActor) {
  ServerOptions options;
  options.trust.identities = {"node-1"};
  start(options);
  const CallWish spoof{.metadata = {{"x-weir-priority", "high"}}};
  const auto node = stub_as("node-1");
  const auto stranger = stub_as("node-11");
  behaviour_.desk.hold();
  auto from_node = get_value(*node, spoof);
  auto from_stranger = get_value(*stranger, spoof);
  ASSERT_TRUE(behaviour_.desk.wait_until_inside(2));
  EXPECT_EQ(admitted_as(*server_, Priority::kHigh), 1U);
  EXPECT_EQ(admitted_as(*server_, Priority::kNormal), 1U);
  const auto peers = server_->controller().top_peers(2);
  EXPECT_TRUE(peers.size() == 1 && peers[0].label == "node-1");
  const auto actors = server_->controller().top_actors(2);
  EXPECT_TRUE(actors.size() == 1 && actors[0].label == "node-11");
  behaviour_.desk.release();
  EXPECT_TRUE(from_node.get().status.ok());
  EXPECT_TRUE(from_stranger.get().status.ok());
}

}  // namespace
}  // namespace weir::grpc
