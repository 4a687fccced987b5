// Formats the result of `fomoe plan` as text, JSON and CSV.
#pragma once
#include <string>
#include <vector>

#include "experiments/planner/answer.hpp"

namespace fomoe::commands {

/// If no candidate keeps the limits: the candidate with the least of one limited amount, without limits.
struct Least {
  planner::Measure measure;
  planner::Finalist finalist;
};

struct PlannerAnswer {
  const planner::Question& question;
  const planner::Space& space;
  const planner::Screening& screening;
  const planner::Answer& answer;
  const planner::AnswerOptions& options;
  std::vector<Least> least = {};
};

std::string planner_text(const PlannerAnswer& plan);
std::string planner_json(const PlannerAnswer& plan);
std::string planner_csv(const PlannerAnswer& plan);

}  // namespace fomoe::commands
