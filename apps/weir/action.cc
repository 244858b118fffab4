#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "weir/base/duration_text.h"
#include "weir/base/time.h"

#include "admin_target.h"
#include "subcommand.h"

namespace weir::app {
namespace {

using Json = nlohmann::ordered_json;

struct ActionOptions {
  AdminTarget target;
  std::string upstream;
  std::string endpoint;
  std::string rule;
  std::string actor;
  std::string id;
  std::string time;
  std::int64_t limit = 0;
  std::int64_t route = -1;
  bool dry_run = false;
  bool force = false;
  bool json = false;
};

int complain(const std::string& why) {
  std::cerr << "weir action: " << why << "\n";
  return kFailed;
}

/// What the answer says; discarded if it is not an object.
Json answer_in(const AdminAnswer& answer) {
  Json page = Json::parse(answer.body, nullptr, false);
  return page.is_object() ? page : Json(Json::value_t::discarded);
}

std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string line_of(const Json& one) {
  return text_in(one, "id") + "  " + text_in(one, "kind") + " " + text_in(one, "what") + "  " +
         one.value("left_s", Json()).dump() + " s left";
}

int failed(const AdminAnswer& answer, const Json& page) {
  if (answer.status == 404 && page.is_discarded()) {
    return complain("the gateway takes no actions: set admin.actions, see docs/guide/actions.md");
  }
  const std::string error = page.is_discarded() ? answer.body : text_in(page, "error");
  return complain(error + " (" + std::to_string(answer.status) + ")");
}

int list(const ActionOptions& options) {
  const auto client = client_for(options.target);
  if (!client) return complain(client.error());
  const auto answer = client->get("/overrides");
  if (!answer) return complain(answer.error());
  const Json page = answer_in(*answer);
  if (answer->status != 200 || page.is_discarded()) return failed(*answer, page);
  if (options.json) {
    std::cout << answer->body;
    return kOk;
  }
  const Json overrides = page.value("overrides", Json::array());
  for (const Json& one : overrides) std::cout << line_of(one) << "\n";
  if (overrides.empty()) std::cout << "no overrides\n";
  return kOk;
}

int act(const std::string& name, const ActionOptions& options) {
  Json body = Json::object();
  if (!options.upstream.empty()) body["upstream"] = options.upstream;
  if (!options.endpoint.empty()) body["endpoint"] = options.endpoint;
  if (!options.rule.empty()) body["rule"] = options.rule;
  if (!options.actor.empty()) body["actor"] = options.actor;
  if (!options.id.empty()) body["id"] = options.id;
  if (options.limit != 0) body["limit"] = options.limit;
  if (options.route >= 0) body["route"] = options.route;
  if (!options.time.empty()) {
    const auto time = parse_duration(options.time);
    if (!time || *time < std::chrono::seconds(1)) {
      std::cerr << "weir action: --for " << options.time << ": wanted is " << kDurationSyntax
                << ", at least 1s\n";
      return kUsageError;
    }
    body["for_s"] = static_cast<std::int64_t>(to_seconds(*time));
  }
  if (options.force) body["force"] = true;
  if (options.dry_run) body["dry_run"] = true;
  const auto client = client_for(options.target);
  if (!client) return complain(client.error());
  const auto answer = client->post("/actions/" + name, body.dump());
  if (!answer) return complain(answer.error());
  const Json page = answer_in(*answer);
  if (answer->status != 200 || page.is_discarded()) return failed(*answer, page);
  if (options.json) {
    std::cout << answer->body;
    return kOk;
  }
  std::cout << (options.dry_run ? "dry run: " : "done: ") << text_in(page, "preview") << "\n";
  if (const auto made = page.find("override"); made != page.end() && !options.dry_run) {
    std::cout << line_of(*made) << "\n";
  }
  return kOk;
}

/// One action with what all of them have.
class Actions {
 public:
  Actions(CLI::App& command, int& status) : command_(command), status_(status) {}

  using Add = std::function<void(CLI::App&, ActionOptions&)>;
  void add(const std::string& name, const std::string& help, const Add& more) {
    const auto options = std::make_shared<ActionOptions>();
    CLI::App* one = command_.add_subcommand(name, help);
    more(*one, *options);
    add_admin_target(*one, options->target);
    one->add_flag("--json", options->json, "Print the answer as the gateway gives it");
    const bool only_asks = name == "list";
    if (!only_asks) {
      one->add_flag("--dry-run", options->dry_run, "Say what would be done, and do nothing");
    }
    one->callback([options, name, only_asks, &status = status_] {
      status = only_asks ? list(*options) : act(name, *options);
    });
  }

 private:
  CLI::App& command_;
  int& status_;
};

void add_time(CLI::App& command, ActionOptions& options, const std::string& bounds) {
  command.add_option("--for", options.time, "How long, as in 90s or 10m " + bounds);
}

void add_endpoint(CLI::App& command, ActionOptions& options) {
  command.add_option("ENDPOINT", options.endpoint, "Address of the endpoint, as in /endpoints")
      ->required();
  command.add_option("--upstream", options.upstream,
                     "Name of its upstream, if several have this endpoint");
}

}  // namespace

void add_action(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "action", "Change a running gateway for a time (see docs/guide/actions.md)");
  command->require_subcommand(1);
  Actions actions(*command, status);
  actions.add("drain", "Send no new requests to an endpoint", [](CLI::App& one, auto& options) {
    add_endpoint(one, options);
    add_time(one, options, "[10m, at most 1h]");
    one.add_flag("--force", options.force, "Even if less than half of the endpoints stay open");
  });
  actions.add("undrain", "End the drain of an endpoint", add_endpoint);
  actions.add("shadow", "Let a rule count what it would refuse, and refuse nothing",
              [](CLI::App& one, auto& options) {
                one.add_option("RULE", options.rule,
                               "deadline, memory, peer, actor, bytes, class_cap or limit")
                    ->required();
                add_time(one, options, "[10m, at most 1h]");
              });
  actions.add("cap", "Keep the limit of an upstream below a number",
              [](CLI::App& one, auto& options) {
                one.add_option("UPSTREAM", options.upstream, "Name of the upstream")->required();
                one.add_option("LIMIT", options.limit, "Highest limit")->required();
                add_time(one, options, "[10m, at most 1h]");
              });
  actions.add("log", "Write every request of an actor or a route to the access log",
              [](CLI::App& one, auto& options) {
                auto* actor = one.add_option("--actor", options.actor,
                                             "Name of the actor, or its id in /actors");
                one.add_option("--route", options.route, "Number of the [[route]], from 0")
                    ->excludes(actor);
                add_time(one, options, "[60s, at most 60s]");
              });
  actions.add("reload", "Read the configuration again, as SIGHUP does", [](auto&, auto&) {});
  actions.add("remove", "End an override", [](CLI::App& one, auto& options) {
    one.add_option("ID", options.id, "Id of the override, as in weir action list")->required();
  });
  actions.add("list", "Show the overrides in force", [](auto&, auto&) {});
  command->footer(R"(Examples:
  weir action drain 10.0.0.1:80 --for 10m --dry-run
  weir action shadow limit --for 5m --config weir.toml
  weir action list --admin unix:/run/weir/actions.sock
Every override ends by itself. What is to stay belongs in weir.toml.
Exit status: 0 done, 1 not done, 2 wrong option.)");
}

}  // namespace weir::app
