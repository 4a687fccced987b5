// What the rows imply: the columns of the surface, the slopes in K, and the errors that become intervals.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "costmodel/published/losses.hpp"
#include "costmodel/published/statistics.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::costmodel {

namespace {

constexpr const char* kSurfacePaper = "Charles et al. 2025";
// A ratio of perplexities, and the run whose loss it is a ratio of.
constexpr const char *kRatioRow = "diloco-150M-K1000-vs-K50", *kRatioLoss = "diloco-150M-M8-noniid";
constexpr const char *kEager = "eager-t2-1-outer-step-eager", *kNotEager = "eager-t2-no-overlap";
constexpr double kEagerSize = 5e8;                           // active parameters of these two
constexpr double kLeastParameters = 2e7, kLeastTokens = 15;  // of runs that differences are taken from

double infinite_if_missing(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::infinity());
}

double own_points(const PublishedRun& run) { return points_above(*run.nats(), *run.baseline_nats()); }
double log_size(const PublishedRun& run) { return std::log(*run.parameters_active); }

/// The loss to which the points of a group refer: that of the first run's baseline, or of the first run.
double base_of(const std::vector<const PublishedRun*>& group) {
  return group.front()->baseline_nats().value_or(*group.front()->nats());
}

/// A paper's list in the order in which papers appear in the table.
template <class Values>
Values& of_paper(std::vector<std::pair<std::string, Values>>& lists, const std::string& paper) {
  for (auto& [name, values] : lists)
    if (name == paper) return values;
  return lists.emplace_back(paper, Values{}).second;
}

}  // namespace

double doublings_of_steps(std::int64_t local_steps) {
  return std::log2(static_cast<double>(std::max(local_steps, kLeastSteps)) /
                   static_cast<double>(kSurfaceSteps));
}

PublishedLosses::PublishedLosses(PublishedRuns runs) : runs_(std::move(runs)) {
  for (const PublishedRun& run : runs_) {
    if (!run.usable()) continue;
    usable_.push_back(&run);
    if (run.family == "nesterov" && run.nats()) diloco_.push_back(&run);
  }
  read_columns();
  read_slopes();
  read_run_deviation();
  read_level_errors();
  read_replica_errors();
  read_eager();
}

const PublishedRun& PublishedLosses::by_id(const std::string& id) const {
  const auto found =
      std::find_if(usable_.begin(), usable_.end(), [&](const PublishedRun* run) { return run->id == id; });
  // The table is compiled into the program: a missing row is a bug of the program.
  if (found == usable_.end()) throw std::logic_error("published_quality.csv has no usable row " + id);
  return **found;
}

void PublishedLosses::read_columns() {
  for (const PublishedRun* run : diloco_) {
    if (run->paper == kSurfacePaper && !run->independent())
      columns_[run->replicas].push_back({log_size(*run), own_points(*run), run->id});
  }
  for (auto& [replicas, entries] : columns_)
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.x < b.x; });
}

std::vector<PublishedLosses::Group> PublishedLosses::groups(Varied varied) const {
  // Rows that are equal in all of this may differ in the varied column alone; with K, rounds follow.
  const auto key = [&](const PublishedRun& run) {
    const bool steps = varied == Varied::local_steps;
    return std::make_tuple(
        run.paper, run.method, run.parameters_active, run.tokens, steps ? run.replicas : 0,
        steps ? 0 : run.local_steps,
        std::make_tuple(run.outer_optimizer, run.outer_learning_rate, run.wire_bits, run.density,
                        run.overlap_steps),
        std::make_tuple(run.data, run.same_data, run.batch_rule, run.baseline_kind, run.metric), run.steps,
        steps ? std::nullopt : run.rounds);
  };
  std::vector<std::pair<decltype(key(*diloco_.front())), Group>> found;
  for (const PublishedRun* run : diloco_) {
    const double size = *run->parameters_active;
    if (run->independent() || size < kLeastParameters || run->replicas < 2 || run->replicas > kMostReplicas ||
        run->local_steps < kLeastSteps || infinite_if_missing(run->rounds) < kLeastRounds ||
        infinite_if_missing(run->tokens) / size < kLeastTokens)
      continue;
    const auto own = key(*run);
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const auto& entry) { return entry.first == own; });
    if (same != found.end()) {
      same->second.push_back(run);
    } else {
      found.emplace_back(own, Group{run});
    }
  }
  std::vector<Group> groups;
  for (auto& [unused, group] : found) {
    const auto value = [&](const PublishedRun* run) {
      return varied == Varied::local_steps ? run->local_steps : run->replicas;
    };
    const bool differs = std::any_of(group.begin(), group.end(), [&](const PublishedRun* run) {
      return value(run) != value(group.front());
    });
    if (differs) groups.push_back(std::move(group));
  }
  return groups;
}

void PublishedLosses::read_slopes() {
  struct OfPaper {
    std::vector<double> slopes;
    std::vector<std::string> rows;
  };
  std::vector<std::pair<std::string, OfPaper>> papers;
  for (const Group& group : groups(Varied::local_steps)) {
    const double base = base_of(group);
    std::vector<double> x, y;
    OfPaper& paper = of_paper(papers, group.front()->paper);
    for (const PublishedRun* run : group) {
      x.push_back(doublings_of_steps(run->local_steps));
      y.push_back(points_above(*run->nats(), base));
      paper.rows.push_back(run->id);
    }
    paper.slopes.push_back(least_squares_slope(x, y));
  }
  const PublishedRun& ratio = by_id(kRatioRow);
  const std::string_view steps =
      std::string_view(ratio.baseline_kind).substr(std::string_view("diloco_K").size());
  const double rise = 100 * std::log(ratio.value.value()) / by_id(kRatioLoss).nats().value();
  const double doublings =
      doublings_of_steps(ratio.local_steps) - doublings_of_steps(parse_number<std::int64_t>(steps).value());
  OfPaper& paper = of_paper(papers, ratio.paper);
  paper.slopes.push_back(rise / doublings);
  paper.rows.emplace_back(kRatioRow);
  std::vector<double> values;
  for (const auto& [name, found] : papers) {
    slopes_.push_back({name, mean_of(found.slopes), found.rows});
    values.push_back(slopes_.back().value);
  }
  slope_ = mean_of(values);
  // Of a study that is not among these: its own deviation, and that of the mean.
  slope_half_ = t_90(static_cast<int>(values.size()) - 1) * standard_deviation(values) *
                std::sqrt(1 + 1 / static_cast<double>(values.size()));
}

// Charles et al. trained six runs twice, with two extrapolations of the hyperparameters.
void PublishedLosses::read_run_deviation() {
  std::vector<double> differences;
  for (const PublishedRun* run : diloco_) {
    if (!run->independent()) continue;
    const std::string joint = run->id.substr(0, run->id.size() - std::string_view("-independent").size());
    differences.push_back(points_above(*run->nats(), *by_id(joint).nats()));
  }
  run_deviation_ = root_mean_square(differences) / std::sqrt(2);
}

std::map<std::int64_t, std::map<double, double>> PublishedLosses::left_out() const {
  std::map<std::int64_t, std::map<double, double>> errors;
  for (const auto& [replicas, entries] : columns_) {
    for (std::size_t i = 1; i + 1 < entries.size(); ++i) {
      const Entry &low = entries[i - 1], &high = entries[i + 1];
      const double expected =
          low.points + (high.points - low.points) * (entries[i].x - low.x) / (high.x - low.x);
      errors[replicas][entries[i].x] = expected - entries[i].points;
    }
  }
  return errors;
}

// The mean error counts as 0, so that there are as many degrees of freedom as studies.
double PublishedLosses::half_of(const Errors& errors) {
  double squares = 0;
  for (const auto& [paper, values] : errors) squares += std::pow(root_mean_square(values), 2);
  const auto studies = static_cast<double>(errors.size());
  return t_90(static_cast<int>(errors.size())) * std::sqrt(squares / studies);
}

// Where the data-parallel baseline was tuned and K is within a factor of 2 of the surface's.
void PublishedLosses::read_level_errors() {
  Errors errors;
  for (const auto& [replicas, column] : left_out())
    for (const auto& [x, error] : column) errors[kSurfacePaper].push_back(error);
  for (const PublishedRun* run : diloco_) {
    const bool tuned = run->baseline_tuned == "yes" || run->baseline_tuned == "extrapolated";
    if (!tuned || run->baseline_kind != "data_parallel" || run->replicas > kMostReplicas ||
        std::abs(doublings_of_steps(run->local_steps)) > 1 ||
        (run->paper == kSurfacePaper && !run->independent()))
      continue;
    errors[run->paper].push_back(surface(*run->parameters_active, run->replicas).points - own_points(*run));
  }
  level_studies_ = errors.size();
  level_half_ = half_of(errors);
}

// Of differences between numbers of replicas from 2 to 8, for the same stated tokens.
void PublishedLosses::read_replica_errors() {
  Errors errors;
  const auto left = left_out();
  for (const auto& [low, high] : {std::pair{2, 4}, {2, 8}, {4, 8}}) {
    for (const auto& [x, error] : left.at(low)) {
      const auto other = left.at(high).find(x);
      if (other != left.at(high).end()) errors[kSurfacePaper].push_back(other->second - error);
    }
  }
  for (Group group : groups(Varied::replicas)) {
    if (!group.front()->tokens || group.front()->local_steps > kMostStepsOfReplicas) continue;
    const double base = base_of(group);
    std::stable_sort(group.begin(), group.end(),
                     [](const PublishedRun* a, const PublishedRun* b) { return a->replicas < b->replicas; });
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        const PublishedRun &a = *group[i], &b = *group[j];
        if (a.replicas == b.replicas) continue;
        const double expected = surface(*b.parameters_active, b.replicas).points -
                                surface(*a.parameters_active, a.replicas).points;
        errors[a.paper].push_back(expected - points_above(*b.nats(), base) + points_above(*a.nats(), base));
      }
    }
  }
  replica_studies_ = errors.size();
  replica_half_ = half_of(errors);
}

// Of an eager update that is under way for a whole round. One study (arXiv 2502.12996) has two estimates at
// 5e8 parameters: Table 6 (M = 2, K = 30) minus the surface, and Table 2, eager minus no overlap.
void PublishedLosses::read_eager() {
  for (const PublishedRun* run : usable_) {
    if (!run->id.starts_with("eager-") || !run->id.ends_with("M-K30")) continue;
    eager_.push_back(
        {log_size(*run), own_points(*run) - surface(*run->parameters_active, 2).points, run->id});
  }
  std::sort(eager_.begin(), eager_.end(), [](const Entry& a, const Entry& b) { return a.x < b.x; });
  const double paired = points_above(by_id(kEager).nats().value(), by_id(kNotEager).nats().value());
  eager_half_ = t_90(1) * standard_deviation({between(eager_, std::log(kEagerSize)).points, paired}) *
                std::sqrt(1 + 1 / 2.0);
}

}  // namespace fomoe::costmodel
