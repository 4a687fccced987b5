// What `fomoe plan` found, for people and for machines.
#pragma once
#include <string>
#include <vector>

#include "experiments/planner/answer.hpp"

namespace fomoe::commands {

/// Where nothing keeps the limits: who has the least of what was limited, limits aside.
struct Least {
  planner::Measure measure;
  planner::Finalist finalist;
};

struct PlanAnswer {
  const planner::Question& question;
  const planner::Space& space;
  const planner::Screening& screening;
  const planner::Answer& answer;
  const planner::AnswerOptions& options;
  std::vector<Least> least = {};
};

std::string plan_text(const PlanAnswer& plan);
std::string plan_json(const PlanAnswer& plan);
std::string plan_csv(const PlanAnswer& plan);

/// "fomoe simulate S.toml --set …", quoted for a shell.
std::string simulate_line(const planner::Question& question, const planner::Finalist& finalist);

}  // namespace fomoe::commands
