#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "snapshot.h"
#include "ui_state.h"

namespace weir::app::top {

/// The messages in samples/<name>.json, which the fake gateway of the integration test sends, too.
inline nlohmann::json sample(const std::string& name) {
  std::ifstream file(std::string(WEIR_TOP_DIR) + "/samples/" + name + ".json");
  return nlohmann::json::parse(file);
}

inline nlohmann::json sample_tick(const nlohmann::json& messages, Page page) {
  const std::string view(facts_of(page).view);
  nlohmann::json tick = messages.at("tick");
  if (view == "memory") {
    tick["memory"].update(messages.at("memory"));
  } else if (messages.contains(view)) {
    tick[view] = messages.at(view);
  }
  return tick;
}

/// What is known after hello and one tick, on `page`.
inline Snapshot snapshot_of(const nlohmann::json& messages, Page page) {
  Snapshot snapshot;
  nlohmann::json hello = messages.at("hello");
  hello["view"] = facts_of(page).view;
  EXPECT_TRUE(apply_message(snapshot, "hello", hello.dump()));
  EXPECT_TRUE(apply_message(snapshot, "tick", sample_tick(messages, page).dump()));
  return snapshot;
}
inline Snapshot sample_snapshot(const std::string& name, Page page) {
  return snapshot_of(sample(name), page);
}

}  // namespace weir::app::top
