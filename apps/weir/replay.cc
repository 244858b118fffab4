#include "weir/experimental/sim/replay.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "weir/base/result.h"
#include "weir/experimental/client/client.h"

#include "subcommand.h"

namespace weir::app {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{2} << 30U;
constexpr std::uint32_t kPageMax = std::uint32_t{4} << 20U;  // of a gateway: its ring and a header

using Bytes = Result<std::string, std::string>;

Bytes read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return unexpected<std::string>("no such file");
  }
  if (std::filesystem::file_size(path, error) > kBytesMax) {
    return unexpected<std::string>("longer than a recording can be");
  }
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file || !content) return unexpected<std::string>("cannot be read");
  return content.str();
}

/// "http://127.0.0.1:9901" and "http://127.0.0.1:9901/recording?seconds=60"
Bytes fetch(const std::string& url) {
  constexpr std::size_t kScheme = 7;  // http://
  const std::size_t slash = std::min(url.find('/', kScheme), url.size());
  std::string path = url.substr(slash);
  if (path.empty() || path == "/") path = "/recording";
  ClientConfig config;
  config.endpoints = {url.substr(0, slash)};
  config.response_body_max = kPageMax;
  auto client = Client::create(config);
  if (!client) {
    return unexpected(std::string("must be ") + client.error().front().allowed);
  }
  const Client::Answer answer = client->get(path);
  if (!answer) return unexpected<std::string>("the gateway does not answer");
  if (answer->status != 200) {
    return unexpected("the gateway answers " + std::to_string(answer->status) + ": " +
                      answer->body.substr(0, 200));
  }
  return answer->body;
}

}  // namespace

void add_replay(CLI::App& program, int& status) {
  const auto options = std::make_shared<sim::ReplayOptions>();
  CLI::App* command = program.add_subcommand(
      "replay", "Replay recorded decisions, and show what other settings would have done");
  command
      ->add_option("RECORDING", options->name,
                   "A file of the decision recorder, or http://ADMIN of a running gateway")
      ->required();
  command->add_option("-c,--config", options->config, "What would this weir.toml have done?");
  command
      ->add_option(
          "--set", options->assignments,
          "Change one value, as in admission.limit.max_limit=64 or upstream.app.max_limit=64")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--workers", options->workers, "What if the service had this many workers?")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--upstream", options->upstream, "Which one [that with most decisions]");
  command->add_option("--recorded-config", options->recorded_config,
                      "The weir.toml of then, in place of what the recording holds");
  command->add_flag("--json", options->json, "Report as JSON");
  command->footer(
      "Exit status: 0 the replay fits the recording, 1 it does not, so nothing is forecast,\n"
      "2 bad input.");
  command->callback([options, &status] {
    const bool url = options->name.starts_with("http://");
    Bytes bytes = url ? fetch(options->name) : read_file(options->name);
    if (!bytes) {
      std::cerr << "weir replay: " << options->name << ": " << bytes.error() << "\n";
      status = kUsageError;
      return;
    }
    options->bytes = std::move(*bytes);
    status = sim::replay(*options, std::cout, std::cerr);
  });
}

}  // namespace weir::app
