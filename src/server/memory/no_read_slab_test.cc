// Reading is never blocked on other connections: each has its region when it needs one.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/server_testing.h"

namespace weir::inline v0::inline server {
namespace {

using testkit::Client;
using testkit::count_body;
using testkit::every_loop;
using testkit::RunningServer;
using testkit::ScriptedHandler;
using testkit::small_config;

std::string post_head(std::size_t length) {
  return "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(NoReadSlab, ReadsWorkWithoutSlab) {
  // If no write buffer is free, there is still memory to read into.
  ServerConfig config = small_config();
  config.tcp_write_buffer_pool_size = 1;
  RunningServer server(config, every_loop(count_body));
  Client client(server.port());
  EXPECT_EQ(client.ask(post_head(5) + "hello").body, "5");
  EXPECT_EQ(server.stats().read_regions.peak, 1U);
}

TEST(NoReadSlab, ManyConcurrentReads) {
  const ServerConfig config = small_config();
  RunningServer server(config, every_loop(count_body));
  // Partial heads: each connection must keep its bytes, all at the same time.
  std::vector<std::unique_ptr<Client>> clients;
  const std::string request = post_head(4) + "body";
  const int count = 30;  // below ELEVATED
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(clients.back()->send(request.substr(0, 10 + static_cast<std::size_t>(i))));
  }
  EXPECT_TRUE(
      server.eventually([&](const ServerStats& s) { return s.read_regions.used == count; }));
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_TRUE(clients[at]->send(request.substr(10 + at)));
  }
  for (auto& client : clients) EXPECT_EQ(client->read().body, "4");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.read_regions.used == 0; }))
      << "idle connections hold none";
}

TEST(NoReadSlab, LargeRequestBody) {
  RunningServer server(small_config(), every_loop(count_body));
  Client client(server.port());
  const std::size_t size = 20 * 1000 * 1000;
  ASSERT_TRUE(client.send(post_head(size)));
  const std::string block(1'000'000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.send(block));
  EXPECT_EQ(client.read().body, std::to_string(size));
  EXPECT_EQ(server.stats().read_regions.peak, 1U);
  EXPECT_EQ(server.stats().bytes_copied_in, 0U);
}

TEST(NoReadSlab, SlowClientDoesNotBlockOthers) {
  RunningServer server(small_config(), every_loop(count_body));
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(slow.back()->send("POST / HTTP/1.1\r\nho"));  // and nothing more
  }
  ASSERT_TRUE(server.eventually([](const ServerStats& s) { return s.read_regions.used == 20; }));
  Client quick(server.port());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(quick.ask(post_head(3) + "abc").body, "3");
  EXPECT_TRUE(server.eventually([](const ServerStats& s) { return s.read_regions.used == 20; }));
}

TEST(NoReadSlab, ConnBufferBackpressure) {
  // A handler that pauses: the region fills, then flow control stops the client.
  static std::promise<ServerStream*> stopped;
  stopped = {};
  const ServerConfig config = [] {
    ServerConfig c = small_config();
    c.socket_receive_buffer_size = 16 * 1024;
    return c;
  }();
  RunningServer server(config, every_loop([](ScriptedHandler& h) {
                         count_body(h);
                         h.headers = [](ServerStream& s, const ServerRequest&) {
                           s.pause();
                           stopped.set_value(&s);
                         };
                       }));
  Client client(server.port());
  const std::size_t size = 4 * 1000 * 1000;
  ASSERT_TRUE(client.send(post_head(size)));
  ServerStream* stream = stopped.get_future().get();
  std::future<bool> sending =
      std::async(std::launch::async, [&] { return client.send(std::string(size, 'x')); });
  EXPECT_EQ(sending.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "the client cannot get rid of its bytes";
  EXPECT_LE(server.stats().bytes_received, config.conn_decrypted_buf_size);
  std::promise<void> resumed;
  stream->loop().post([&] {
    stream->resume();
    resumed.set_value();
  });
  resumed.get_future().wait();
  EXPECT_TRUE(sending.get());
  EXPECT_EQ(client.read().body, std::to_string(size));
}

}  // namespace
}  // namespace weir::inline v0::inline server
