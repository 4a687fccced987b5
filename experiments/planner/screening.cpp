#include "experiments/planner/screening.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "costmodel/model/flops.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/planner/rules.hpp"
#include "experiments/sweep/rows.hpp"

namespace fomoe::planner {

namespace {

using costmodel::Scenario;

/// The quality coordinates of the rows of a family. If an axis sets a coordinate, its value depends on the
/// row; otherwise it is the same in all rows.
class Coordinates {
 public:
  Coordinates(const Scenario& base, const Family& family) : family_(family) {
    const bool overlaps = costmodel::has_axis(*family.method, "overlap_steps");
    constant_.local_steps = static_cast<double>(steps_per_round(*family.method, base.strategy.local_steps));
    constant_.overlap_steps = overlaps ? static_cast<double>(base.strategy.overlap_steps) : 0;
    rounds_late_ = family.method->rounds_late;
    constant_.averages_everything = family.method->averages_everything;
    for (std::size_t a = 0; a < family.grid.axes().size(); ++a) {
      const sweep::Axis& axis = family.grid.axes()[a];
      if (axis.key == "strategy.local_steps") local_steps_ = static_cast<int>(a);
      if (axis.key == "strategy.overlap_steps") overlap_steps_ = static_cast<int>(a);
      if (axis.key == "strategy.expert_overlap") overlap_ = static_cast<int>(a);
      if (axis.key == "strategy.payload_dtype") payload_ = static_cast<int>(a);
      if (axis.key == "platform.sites") {
        sites_ = static_cast<int>(a);
        site_counts_ = axis.numbers;
      }
      if (axis.key == "platform.use_sites") {
        sites_ = static_cast<int>(a);
        for (const std::string& set : axis.words)
          site_counts_.push_back(1.0 + static_cast<double>(std::count(set.begin(), set.end(), ',')));
      }
    }
    base_sites_ = base.sites();
    base_overlap_ = costmodel::effective_overlap(base);
    experts_ = static_cast<double>(base.model.experts);
    active_experts_ = static_cast<double>(base.model.active_experts);
  }

  void fill_in(Candidate& candidate) const {
    const std::uint64_t row = candidate.row;
    QualityCoordinates& at = candidate.quality;
    at = constant_;
    const auto number = [&](int axis) {
      const auto a = static_cast<std::size_t>(axis);
      return family_.grid.axes()[a].numbers[family_.grid.digit(row, a)];
    };
    if (local_steps_ >= 0) at.local_steps = number(local_steps_);
    if (overlap_steps_ >= 0) at.overlap_steps = number(overlap_steps_);
    at.overlap_steps += rounds_late_ * at.local_steps;
    const double sites = candidate.sites =
        sites_ < 0 ? base_sites_ : site_counts_[family_.grid.digit(row, static_cast<std::size_t>(sites_))];
    if (family_.method->partial_experts) {
      const double overlap = overlap_ >= 0 ? number(overlap_) : base_overlap_;
      at.overlap_share = overlap / sites;
      at.fewer_experts = at.overlap_share * experts_ < active_experts_ * (1 - 1e-9);
    }
    const bool one_format = payload_ < 0 || family_.wire_bytes.size() == 1;
    at.bytes_per_element =
        family_.wire_bytes[one_format ? 0 : family_.grid.digit(row, static_cast<std::size_t>(payload_))];
  }

 private:
  const Family& family_;
  QualityCoordinates constant_;
  int local_steps_ = -1, overlap_steps_ = -1, overlap_ = -1, payload_ = -1, sites_ = -1;
  std::vector<double> site_counts_;
  double base_sites_ = 1, base_overlap_ = 1, rounds_late_ = 0;
  double experts_ = 0, active_experts_ = 0;  // of a layer
};

class Screen {
 public:
  Screen(Screening& screening, const ScreeningOptions& options, bool has_quality)
      : screening_(screening), options_(options), has_quality_(has_quality) {}

  void look_at(std::uint32_t family, const Coordinates& coordinates, const sweep::Chunk& chunk,
               std::size_t i) {
    ++screening_.candidates;
    if (!chunk.problems[i].empty()) {
      const std::string& problem = chunk.problems[i];
      drop("impossible: " + problem.substr(0, problem.find(':')), problem);
      return;
    }
    const auto result = [&](std::size_t column) { return chunk.results[column][i]; };
    static constexpr std::size_t kTime = sweep::column("wall_clock_s"), kCost = sweep::column("cost_total"),
                                 kEnergy = sweep::column("energy_kwh"),
                                 kRounds = sweep::column("round_count"),
                                 kCompute = sweep::column("round_compute_s"),
                                 kMemory = sweep::column("memory_bytes_per_gpu"),
                                 kPerplexity = sweep::column("perplexity"),
                                 kPoint = sweep::column("equal_loss_factor"),
                                 kFactor = sweep::column("equal_loss_factor_centre");
    if (const std::string broken =
            broken_memory(result(kMemory), result(sweep::kMemoryColumn), options_.limits);
        !broken.empty())
      return drop(broken, "");
    Candidate candidate;
    candidate.family = family;
    candidate.row = chunk.first_row + i;
    candidate.amounts = {result(kTime), result(kCost), result(kEnergy), 0};
    candidate.perplexity = result(kPerplexity);
    coordinates.fill_in(candidate);
    candidate.quality.few_rounds = result(kRounds) < kFewRounds;
    const bool coarser = coarser_wire(candidate.quality.bytes_per_element, options_.known_bytes_per_element);
    if (coarser) candidate.perplexity = std::numeric_limits<double>::quiet_NaN();
    const double factor = coarser ? candidate.perplexity : result(kFactor);
    candidate.amounts.ports_per_month = options_.ports_per_month * candidate.sites;
    const Amounts equal = to_equal_loss(candidate.amounts, factor);
    candidate.value = equal.of(options_.minimise);
    candidate.other_amount = other_amount(equal, options_.minimise);
    const bool known = !std::isnan(candidate.perplexity) || !std::isnan(factor);
    if (const std::string broken = broken_perplexity(candidate.perplexity, options_.limits); !broken.empty())
      return drop(broken, "");
    if (const std::string broken = broken_amount(candidate.amounts, options_.limits); !broken.empty()) {
      // If sites differ, some closed forms use the slowest link for all sites and overestimate the time.
      // The compute time alone is a lower bound of the time.
      const double compute_share = result(kCompute) * result(kRounds) / candidate.amounts.time_s;
      if (!options_.sites_differ || !broken_amount(candidate.amounts, options_.limits, compute_share).empty())
        return drop(broken, "");
      screening_.doubtful.offer(candidate);
      return;
    }
    screening_.any.offer(candidate);
    if (!has_quality_ || !known) return;
    if (!options_.target_perplexity || candidate.perplexity <= *options_.target_perplexity ||
        !std::isnan(factor)) {
      screening_.known.offer(candidate);
      if (!std::isnan(factor) && std::isnan(result(kPoint))) ++screening_.in_range;
    }
  }

 private:
  void drop(const std::string& reason, const std::string& example) {
    Dropped& entry = screening_.dropped[reason];
    if (entry.count++ == 0) entry.example = example;
  }

  Screening& screening_;
  const ScreeningOptions& options_;
  bool has_quality_;
};

std::vector<Candidate> by_value(std::vector<Candidate> candidates) {
  std::sort(candidates.begin(), candidates.end(), better);
  return candidates;
}

}  // namespace

double other_amount(const Amounts& amounts, Measure minimise) {
  const double other = minimise == Measure::time ? amounts.cost : amounts.time_s;
  return std::isnan(other) ? 0 : other;
}

bool better(const Candidate& a, const Candidate& b) {
  if (a.value != b.value) return a.value < b.value;
  if (less_risky(a.quality, b.quality)) return true;
  if (less_risky(b.quality, a.quality)) return false;
  return std::make_tuple(a.family, a.row) < std::make_tuple(b.family, b.row);
}

std::size_t Shortlist::Hash::operator()(const Level& level) const {
  std::size_t hash = 0;
  for (const double part : level) hash = hash * 1'000'003 + std::hash<double>{}(part);
  return hash;
}

Shortlist::Level Shortlist::level_of(const Candidate& candidate) const {
  if (by_perplexity_ && !std::isnan(candidate.perplexity))
    return {candidate.perplexity, candidate.sites, 0, 0, 0, 0, 0};
  const QualityCoordinates& q = candidate.quality;
  // Candidates are grouped into eight levels of local steps per factor of 2. Neighbouring numbers of local
  // steps give similar quality, and --vary may list thousands of numbers.
  return {candidate.sites,           std::floor(8 * std::log2(q.local_steps)),
          q.overlap_share,           q.bytes_per_element,
          q.overlap_steps,           q.averages_everything ? 1.0 : 0.0,
          trains_less(q) ? 1.0 : 0.0};
}

void Shortlist::offer(const Candidate& candidate) {
  ++offered_;
  const auto [method, new_method] = of_method_.try_emplace(candidate.family, candidate);
  if (!new_method && better(candidate, method->second)) method->second = candidate;
  const auto [level, new_level] = of_level_.try_emplace(level_of(candidate), candidate);
  if (!new_level && better(candidate, level->second)) level->second = candidate;
}

std::vector<Candidate> Shortlist::of_methods(const Space& space) const {
  std::map<const costmodel::Method*, Candidate> best;
  for (const auto& [family, candidate] : of_method_) {
    const auto [entry, is_new] = best.try_emplace(space.families[family].method, candidate);
    if (!is_new && better(candidate, entry->second)) entry->second = candidate;
  }
  std::vector<Candidate> list;
  for (const auto& [method, candidate] : best) list.push_back(candidate);
  return by_value(std::move(list));
}

std::vector<Candidate> Shortlist::best(std::size_t count) const {
  std::vector<Candidate> list;
  for (const auto& [level, candidate] : of_level_) list.push_back(candidate);
  list = by_value(std::move(list));
  if (list.size() > count) list.resize(count);
  return list;
}

std::vector<Candidate> Shortlist::prudent(double slack) const {
  constexpr std::size_t kOfEach = 2;
  std::vector<Candidate> by_risk = best(of_level_.size()), kept;
  if (by_risk.empty()) return kept;
  const auto enough = std::find_if(by_risk.begin(), by_risk.end(), [&](const Candidate& candidate) {
    return by_perplexity_ || !trains_less(candidate.quality);
  });
  const double lowest = enough == by_risk.end() ? by_risk.front().value : enough->value;
  std::stable_sort(by_risk.begin(), by_risk.end(),
                   [](const Candidate& a, const Candidate& b) { return less_risky(a.quality, b.quality); });
  for (const double share : {slack / 2, slack, 2 * slack}) {
    std::size_t found = 0;
    for (const Candidate& candidate : by_risk) {
      if (candidate.value > lowest * (1 + share)) continue;
      kept.push_back(candidate);
      if (++found == kOfEach) break;
    }
  }
  return kept;
}

std::vector<Candidate> Shortlist::frontier() const {
  std::vector<Candidate> kept;
  for (const Candidate& candidate : best(of_level_.size())) {
    const bool dominated = std::any_of(kept.begin(), kept.end(), [&](const Candidate& other) {
      if (other.other_amount > candidate.other_amount) return false;
      return by_perplexity_ ? other.perplexity <= candidate.perplexity
                            : no_riskier(other.quality, candidate.quality);
    });
    if (!dominated) kept.push_back(candidate);
  }
  return kept;
}

Screening screen(const Scenario& base, const Question& question, const Space& space,
                 const ScreeningOptions& options, const std::function<void(std::uint64_t)>& progress) {
  Screening screening;
  Screen look(screening, options, base.quality.has_value());
  for (std::size_t f = 0; f < space.families.size(); ++f) {
    const Family& family = space.families[f];
    const Coordinates coordinates(base, family);
    sweep::Request request{question.scenario_path, question.overrides, family.grid, 0, family.grid.rows()};
    request.overrides.insert(request.overrides.end(), family.overrides.begin(), family.overrides.end());
    sweep::closed_form_rows(request, [&](const sweep::Chunk& chunk) {
      for (std::size_t i = 0; i < chunk.rows; ++i)
        look.look_at(static_cast<std::uint32_t>(f), coordinates, chunk, i);
      progress(screening.candidates);
    });
  }
  return screening;
}

}  // namespace fomoe::planner
