// A client of an installed Weir: its errors are values, and nothing needs the layers' own headers.
#include "weir/experimental/client/client.h"

#include <cstdio>

int main() {
  weir::ClientConfig config;
  if (weir::Client::create(config)) return 1;  // no endpoint
  config.endpoints = {"127.0.0.1:9"};
  auto client = weir::Client::create(config);
  if (!client) return 1;
  const weir::Client::Answer answer = client->get("not a path");
  const bool refused = !answer && answer.error().kind == weir::ClientErrorKind::kBadRequest;
  std::puts(refused && client->close(weir::Duration(0)) ? "ok" : "not refused");
}
