// A gRPC server of a stranger, with the installed component grpc.
#include <cstdio>

#include "weir/embed/clock.h"
#include "weir/experimental/grpc/server_builder.h"

int main() {
  weir::AdmissionController controller({}, weir::Rng(weir::embed::random_seed()));
  weir::grpc::ServerBuilder builder(controller, {.methods = {{"no full name", {}}}});
  std::puts(builder.BuildAndStart() == nullptr && builder.errors().size() == 1 ? "ok" : "wrong");
  return 0;
}
