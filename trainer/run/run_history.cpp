#include "trainer/run/run_history.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::trainer {

using nlohmann::json;
using scenario::PartOfRun;

namespace {

constexpr const char* kSchema = "fomoe.history/2";

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunHistory::RunHistory(std::string directory)
    : path_(directory.empty() ? "" : std::move(directory) + "/history.json") {}

void RunHistory::begins(std::int64_t first_round, std::vector<std::string> absent) {
  // A run that begins at round 0 may have been lost before its first checkpoint, or be a new one.
  if (first_round > 0) parts_ = read();
  const double began_s = now_s();
  parts_.push_back({first_round, began_s, began_s, 0, std::move(absent)});
}

void RunHistory::saved(double upkeep_s) {
  if (path_.empty()) return;
  parts_.back().saved_s = now_s();
  parts_.back().upkeep_s = upkeep_s;
  try {
    write();
  } catch (const std::exception&) {
    // The history is lost, but the training goes on: it is worth more.
  }
}

std::optional<scenario::WholeRun> RunHistory::ended() const {
  if (path_.empty() || parts_.size() < 2 || parts_.front().first_round > 0) return std::nullopt;
  scenario::WholeRun whole;
  whole.restarts = static_cast<std::int64_t>(parts_.size()) - 1;
  whole.wall_clock_s = now_s() - parts_.front().began_s;
  for (std::size_t i = 1; i < parts_.size(); ++i) whole.lost_s += parts_[i].began_s - parts_[i - 1].saved_s;
  whole.parts = parts_;
  for (PartOfRun& part : whole.parts) {
    part.began_s -= parts_.front().began_s;
    part.saved_s -= parts_.front().began_s;
  }
  return whole;
}

std::vector<PartOfRun> RunHistory::read() const {
  std::vector<PartOfRun> parts;
  const std::string text = path_.empty() ? "" : whole_file(path_).value_or("");
  const json known = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!known.is_object() || known.value("schema", "") != kSchema) return parts;
  try {
    for (const json& part : known.at("parts"))
      parts.push_back({part.at("first_round"), part.at("began_s"), part.at("saved_s"), part.at("upkeep_s"),
                       part.at("absent").get<std::vector<std::string>>()});
  } catch (const json::exception&) {
    return {};
  }
  return parts;
}

void RunHistory::write() const {
  json parts = json::array();
  for (const PartOfRun& part : parts_)
    parts.push_back({{"first_round", part.first_round},
                     {"began_s", part.began_s},
                     {"saved_s", part.saved_s},
                     {"upkeep_s", part.upkeep_s},
                     {"absent", part.absent}});
  write_file(path_, json{{"schema", kSchema}, {"parts", parts}}.dump() + "\n");
}

}  // namespace fomoe::trainer
