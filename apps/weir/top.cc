#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "weir/experimental/io/clock.h"

#include "admin_target.h"
#include "subcommand.h"
#include "top/frame_writer.h"
#include "top/live_stream.h"
#include "top/render.h"
#include "top/snapshot.h"
#include "top/terminal.h"
#include "top/top_screen.h"
#include "top/ui_state.h"

namespace weir::app {
namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(5);

struct TopOptions {
  AdminTarget target;
  std::string page = "now";
  std::string upstream;
  bool once = false;
  bool json = false;
  bool read_only = false;
  int interval_s = 1;
};

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What it was asked to show; empty is no page.
std::string wanted_state(const TopOptions& options, top::UiState& ui) {
  for (std::size_t i = 0; i < top::kPageCount; ++i) {
    if (top::kPages[i].name != options.page) continue;
    ui.page = static_cast<top::Page>(i);
    ui.upstream = options.upstream;
    ui.read_only = options.read_only;
    return {};
  }
  std::string names;
  for (const top::PageFacts& page : top::kPages) {
    names += (names.empty() ? "" : ", ") + std::string(page.name);
  }
  return "--page " + options.page + ": there are " + names;
}

/// Waits for the next ticks; their data, or nothing if the stream has ended or is silent too long.
std::vector<std::string> next_ticks(top::LiveStream& stream, top::Snapshot& snapshot) {
  std::vector<std::string> ticks;
  const TimePoint end = io::monotonic_now() + kAnswerWithin;
  while (ticks.empty() && stream.is_open()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - io::monotonic_now());
    pollfd one{.fd = stream.fd(), .events = stream.events(), .revents = 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) == 0) {
      stream.end("no answer within 5 s");
      break;
    }
    stream.on_ready([&](const top::SseEvent& event) {
      if (top::apply_message(snapshot, event.name, event.data) && event.name == "tick") {
        ticks.push_back(event.data);
      }
    });
  }
  return ticks;
}

int unreachable(const AdminClient& client, const top::LiveStream& stream) {
  std::cerr << "weir top: no live view at " << client.name() << ": " << stream.trouble() << "; ";
  if (stream.status() == 0) {
    std::cerr << "start a gateway there, or name its admin endpoint (admin.listen): "
                 "weir top --admin HOST:PORT\n";
  } else if (stream.status() == 503) {
    std::cerr << "close another watcher, or try again in a moment\n";
  } else {
    std::cerr << "name the admin endpoint of a gateway: weir top --admin HOST:PORT\n";
  }
  return kFailed;
}

int print_json(const TopOptions& options, top::LiveStream& stream, std::vector<std::string> ticks,
               top::Snapshot& snapshot) {
  for (int number = 0; !ticks.empty(); ticks = next_ticks(stream, snapshot)) {
    for (const std::string& tick : ticks) {
      if (number++ % options.interval_s != 0) continue;
      std::cout << tick << std::endl;
      if (!std::cout || options.once) return kOk;  // not good: who read it has enough
    }
  }
  std::cerr << "weir top: " << stream.trouble() << "\n";
  return kFailed;
}

/// POST /actions/drain; what the gateway says it does, or why it does not.
Result<std::string, std::string> drain(const AdminClient& client, const top::DrainWish& wish,
                                       bool dry_run) {
  const nlohmann::json order = {
      {"upstream", wish.upstream}, {"endpoint", wish.endpoint}, {"dry_run", dry_run}};
  const auto answer = client.post("/actions/drain", order.dump());
  if (!answer) return unexpected(answer.error());
  const nlohmann::json page = nlohmann::json::parse(answer->body, nullptr, false);
  const char* member = answer->status == 200 ? "preview" : "error";
  const bool has_text = page.is_object() && page.contains(member) && page[member].is_string();
  std::string text = has_text ? page[member].get<std::string>() : std::string();
  if (answer->status == 200) return text;
  if (text.empty()) text = "the gateway answers " + std::to_string(answer->status);
  return unexpected(text);
}

top::Looks looks() {
  return {.colour = environment("NO_COLOR").empty(), .utf8 = top::is_utf8_locale()};
}

int print_once(const top::Snapshot& snapshot, const top::UiState& ui, const std::string& address) {
  top::Link link;
  link.address = address;
  link.once = true;
  const bool with_styles = ::isatty(STDOUT_FILENO) != 0 && environment("TERM") != "dumb";
  const top::Frame frame = top::render(snapshot, ui, link, top::screen_size());
  std::cout << top::as_text(frame, looks(), with_styles) << std::flush;
  return kOk;
}

int show_top(const TopOptions& options) {
  top::UiState ui;
  if (const std::string wrong = wanted_state(options, ui); !wrong.empty()) {
    std::cerr << "weir top: " << wrong << "\n";
    return kUsageError;
  }
  const bool on_screen = !options.once && !options.json;
  if (on_screen && (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0 ||
                    environment("TERM") == "dumb")) {
    std::cerr << "weir top: this is no terminal that can be drawn on; try --once or --json\n";
    return kUsageError;
  }
  const auto target = watch_target_for(options.target);
  if (!target) {
    std::cerr << "weir top: " << (options.target.admin.empty() ? "" : "--admin ") << target.error()
              << "\n";
    return kUsageError;
  }
  const AdminClient& client = target->view;
  ui.has_token = target->has_token;
  ui.has_socket = target->has_socket;
  const auto address = parse_net_address(client.name());
  const bool local = address->kind == NetAddressKind::kUnix;
  top::LiveStream stream(*address, local ? "localhost" : client.name());
  top::Snapshot snapshot;
  stream.open(top::live_path(ui));
  const std::vector<std::string> ticks = next_ticks(stream, snapshot);
  if (ticks.empty()) return unreachable(client, stream);
  if (options.json) return print_json(options, stream, ticks, snapshot);
  if (options.once) return print_once(snapshot, ui, client.name());
  top::TopScreen screen(stream, ui, snapshot,
                        {.address = client.name(),
                         .looks = looks(),
                         .interval_s = options.interval_s,
                         .drain = [&](const top::DrainWish& wish, bool dry_run) {
                           return drain(target->act, wish, dry_run);
                         }});
  return screen.run() ? kOk : kFailed;
}

}  // namespace

void add_top(CLI::App& program, int& status) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command = program.add_subcommand("top", "What a running gateway does, on a terminal");
  add_admin_target(*command, options->target);
  command->add_option("--page", options->page,
                      "The first page: now, refusals, limit, replicas, memory, events [now]");
  command->add_option("--upstream", options->upstream,
                      "Whose charts are shown [the one that is worst off]");
  command->add_option("--interval", options->interval_s, "Seconds between two pictures [1]")
      ->check(CLI::Range(1, 3600));
  command->add_flag("--once", options->once, "Print one picture and end");
  command->add_flag("--json", options->json,
                    "Print what the gateway says, one line of JSON per picture");
  command->add_flag("--read-only", options->read_only, "Offer no actions");
  command->footer(R"(Examples:
  weir top
  weir top --admin unix:/run/weir/actions.sock
  weir top --admin 127.0.0.1:9901 --token-file /etc/weir/token
  weir top --once --page refusals
  weir top --json | jq -r .verdict.sentence
Keys: 1 to 6 or tab change the page, ? shows all keys, q ends. NO_COLOR is obeyed.
Exit status: 0 ended in order, 1 the gateway cannot be reached, 2 wrong option.)");
  command->callback([options, &status] { status = show_top(*options); });
}

}  // namespace weir::app
