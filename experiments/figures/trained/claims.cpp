#include "experiments/figures/trained/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "costmodel/math/pooled_spread.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::figures {
namespace {

costmodel::PooledSpread noise_of(const Trained& trained, OfSeeds values) {
  std::vector<std::vector<double>> groups;
  for (const auto& [setting, runs] : trained) groups.push_back(runs.*values);
  return costmodel::pooled_spread(groups);
}

Verdict verdict_of(const Effect& effect, double threshold) {
  if (effect.comparisons == 0 || effect.half_width < 0) return Verdict::cannot_be_told;
  if (effect.mean - effect.half_width > threshold) return Verdict::holds;
  if (effect.mean + effect.half_width < threshold) return Verdict::does_not_hold;
  return Verdict::cannot_be_told;
}

}  // namespace

std::vector<Term> difference(const Setting& first, const Setting& second) {
  return {{first, 1}, {second, -1}};
}

Comparisons differences(const Trained& trained,
                        const std::function<std::optional<Setting>(const Setting&)>& other) {
  Comparisons list;
  for (const auto& [setting, runs] : trained) {
    const std::optional<Setting> partner = other(setting);
    if (partner && trained.contains(*partner)) list.push_back(difference(setting, *partner));
  }
  return list;
}

Comparisons against_best_within(const Trained& trained, const std::function<bool(const Setting&)>& of,
                                const std::function<bool(const Setting&, const Setting&)>& among,
                                double TrainedRuns::*cost) {
  Comparisons list;
  for (const auto& [setting, runs] : trained) {
    if (!of(setting)) continue;
    const Trained::value_type* best = nullptr;
    for (const auto& other : trained) {
      const bool affordable = among(setting, other.first) && other.second.*cost <= runs.*cost;
      if (affordable && (best == nullptr || other.second.loss() < best->second.loss())) best = &other;
    }
    if (best != nullptr) list.push_back(difference(setting, best->first));
  }
  return list;
}

Comparisons negated(Comparisons comparisons) {
  for (std::vector<Term>& terms : comparisons) {
    for (Term& term : terms) term.second = -term.second;
  }
  return comparisons;
}

std::vector<Setting> frontier_of(const Trained& trained, const std::function<bool(const Setting&)>& wanted,
                                 double TrainedRuns::*cost) {
  std::map<int, std::vector<const Trained::value_type*>> by_sites;
  for (const auto& point : trained) {
    if (wanted(point.first)) by_sites[point.first.sites].push_back(&point);
  }
  std::vector<Setting> frontier;
  for (const auto& [sites, points] : by_sites) {
    std::vector<std::pair<double, double>> cost_and_loss;
    for (const auto* point : points) cost_and_loss.emplace_back(point->second.*cost, point->second.loss());
    const std::vector<bool> on = on_frontier(cost_and_loss);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (on[i]) frontier.push_back(points[i]->first);
    }
  }
  return frontier;
}

Effect effect_of(const Trained& trained, const Comparisons& comparisons, OfSeeds values) {
  Effect effect;
  effect.comparisons = comparisons.size();
  if (comparisons.empty()) return effect;
  std::map<const TrainedRuns*, double> coefficients;
  for (const std::vector<Term>& sum : comparisons) {
    for (const auto& [setting, weight] : sum)
      coefficients[&trained.at(setting)] += weight / static_cast<double>(comparisons.size());
  }
  double per_variance = 0;
  effect.seeds = coefficients.begin()->first->seeds();
  for (const auto& [runs, c] : coefficients) {
    effect.seeds = std::min(effect.seeds, runs->seeds());
    effect.mean += c * mean_of(*runs, values);
    per_variance += c * c / static_cast<double>(runs->seeds());
  }
  effect.half_width = costmodel::half_width(noise_of(trained, values), per_variance);
  return effect;
}

double half_width_of_difference(const Trained& trained, std::size_t seeds) {
  return costmodel::half_width(noise_of(trained, &TrainedRuns::losses), 2 / static_cast<double>(seeds));
}

Claim claim_above_zero(std::string sentence, std::string measure, const Effect& effect) {
  return claim_above(std::move(sentence), std::move(measure), effect, 0);
}

Claim claim_above(std::string sentence, std::string measure, const Effect& effect, double least) {
  return {std::move(sentence), std::move(measure), effect, verdict_of(effect, least), {}, least};
}

Claim claim_at_most(std::string sentence, std::string measure, const Effect& effect, double most) {
  Verdict verdict = verdict_of(effect, most);
  if (verdict == Verdict::holds) {
    verdict = Verdict::does_not_hold;  // the effect is surely larger
  } else if (verdict == Verdict::does_not_hold) {
    verdict = Verdict::holds;
  }
  return {std::move(sentence), std::move(measure), effect, verdict, {}, most, false};
}

std::vector<Claim> within_same_bytes(const Trained& trained, const Rivals& rivals) {
  const auto [first, second, is_first, is_second, comparable, which] = rivals;
  const auto best_of = [&](const std::function<bool(const Setting&)>& side) {
    return [&, side](const Setting& s, const Setting& other) { return side(other) && comparable(s, other); };
  };
  double TrainedRuns::*const bytes = &TrainedRuns::bytes_per_site;
  return {
      claim_above_zero(
          fmt::format("within the bytes of {}, the best {} reach a lower perplexity{}", second, first, which),
          fmt::format("perplexity of {} over that of the best {} that send at most as much", second, first),
          effect_of(trained, against_best_within(trained, is_second, best_of(is_first), bytes))),
      claim_above_zero(
          fmt::format("within the bytes of {}, the best {} reach a higher perplexity{}", first, second,
                      which),
          fmt::format("perplexity of the best {} that send at most as much over that of {}", second, first),
          effect_of(trained, negated(against_best_within(trained, is_first, best_of(is_second), bytes))))};
}

std::vector<Claim> by_sign(const Trained& printed,
                           const std::function<std::vector<Claim>(const Trained&)>& claims_of) {
  const Trained kept = without_diverged(printed);
  std::vector<Claim> claims = claims_of(printed);
  const std::vector<Claim> of_kept = claims_of(kept);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Claim& claim = claims[i];
    constexpr double kSame = 1e-9;  // nats: sums in another order
    if (of_kept[i].effect.comparisons > 0 && std::abs(of_kept[i].effect.mean - claim.effect.mean) > kSame)
      claim.without_diverged = of_kept[i].effect;
    if (claim.effect.comparisons == 0) continue;
    claim.verdict =
        (claim.effect.mean > claim.threshold) == claim.above ? Verdict::holds : Verdict::does_not_hold;
    claim.finding = "printed means, whose spread is not known";
  }
  return claims;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::does_not_hold:
      return "does not hold";
    default:
      return "cannot be told";
  }
}

Json to_json(const Claim& claim) {
  Json json = {{"claim", claim.sentence}, {"measure", claim.measure}, {"verdict", to_string(claim.verdict)}};
  if (!claim.finding.empty()) json["finding"] = claim.finding;
  if (claim.effect.comparisons == 0) return json;
  json["claimed"] = {{claim.above ? "above" : "at_most", claim.threshold}};
  json["comparisons"] = claim.effect.comparisons;
  json["seeds"] = claim.effect.seeds;
  json["effect"] = claim.effect.mean;
  if (claim.effect.half_width >= 0) {
    json["low"] = claim.effect.mean - claim.effect.half_width;
    json["high"] = claim.effect.mean + claim.effect.half_width;
  }
  json["percent"] = 100 * std::expm1(claim.effect.mean);
  if (claim.without_diverged)
    json["percent_without_diverged"] = 100 * std::expm1(claim.without_diverged->mean);
  return json;
}

Json to_json(const std::vector<Claim>& claims) {
  Json list = Json::array();
  for (const Claim& claim : claims) list.push_back(to_json(claim));
  return list;
}

std::string text_of(const std::vector<Claim>& claims) {
  std::string text;
  const auto percent = [](double nats) { return fmt::format("{:+.1f} %", 100 * std::expm1(nats)); };
  for (const Claim& claim : claims) {
    const Effect& effect = claim.effect;
    text += fmt::format("{:<15}{}\n", to_string(claim.verdict), claim.sentence);
    if (effect.comparisons == 0) {
      text += fmt::format("{:15}{}\n", "", claim.finding.empty() ? "no runs to compare" : claim.finding);
      continue;
    }
    const std::string interval = effect.half_width < 0
                                     ? (claim.finding.empty() ? "interval unknown, one seed" : claim.finding)
                                     : fmt::format("95 %: {} to {}", percent(effect.mean - effect.half_width),
                                                   percent(effect.mean + effect.half_width));
    text += fmt::format("{:15}{}: {} ({}; {} comparison{})\n", "", claim.measure, percent(effect.mean),
                        interval, effect.comparisons, effect.comparisons == 1 ? "" : "s");
    if (claim.without_diverged)
      text += fmt::format("{:15}without settings above twice the best perplexity of their sites: {} ({})\n",
                          "", percent(claim.without_diverged->mean), claim.without_diverged->comparisons);
  }
  return text;
}

std::vector<bool> on_frontier(const std::vector<std::pair<double, double>>& cost_and_loss) {
  std::vector<bool> result;
  for (const auto& own : cost_and_loss) {
    result.push_back(std::none_of(cost_and_loss.begin(), cost_and_loss.end(), [&](const auto& other) {
      return (other.first <= own.first && other.second < own.second) ||
             (other.first < own.first && other.second <= own.second);
    }));
  }
  return result;
}

namespace {

struct Row {
  std::string figure, sentence, paper, ours, finding;
  std::optional<double> of_paper, effect, low, high;  // per cent
  std::optional<std::int64_t> seeds;
};

std::optional<double> percent(const Json& claim, const char* nats) {
  if (!claim.contains(nats)) return {};
  return 100 * std::expm1(claim[nats].get<double>());
}

void add(const Json& claim, bool of_paper, const std::string& figure, std::vector<Row>& rows) {
  const std::string sentence = claim["claim"];
  const auto same = [&](const Row& row) { return row.figure == figure && row.sentence == sentence; };
  auto row = std::find_if(rows.begin(), rows.end(), same);
  if (row == rows.end()) row = rows.insert(rows.end(), Row{figure, sentence, {}, {}, {}, {}, {}, {}, {}, {}});
  if (of_paper) {
    row->paper = claim["verdict"];
    row->of_paper = percent(claim, "effect");
    return;
  }
  row->ours = claim["verdict"];
  row->finding = claim.value("finding", "");
  row->effect = percent(claim, "effect");
  row->low = percent(claim, "low");
  row->high = percent(claim, "high");
  if (claim.contains("seeds")) row->seeds = claim["seeds"].get<std::int64_t>();
}

template <class T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell(std::string());
}

std::string text_of_cell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  return fmt::format("{:+.1f} %", std::get<double>(cell));
}

}  // namespace

Figure claims_table(const std::vector<Figure>& figures, const std::vector<std::string_view>& ids) {
  constexpr std::string_view kClaims = "claims_";
  std::vector<Row> rows;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    for (const auto& [name, claims] : figures[i].findings.items()) {
      if (!name.starts_with(kClaims)) continue;
      for (const Json& claim : claims) add(claim, name == "claims_paper", std::string(ids[i]), rows);
    }
  }
  Figure table;
  table.columns = {"figure",         "claim",       "paper",        "paper_percent", "ours",
                   "effect_percent", "low_percent", "high_percent", "fewest_seeds",  "finding"};
  for (Row& row : rows) {
    table.rows.push_back({std::move(row.figure), std::move(row.sentence), std::move(row.paper),
                          cell_of(row.of_paper), std::move(row.ours), cell_of(row.effect), cell_of(row.low),
                          cell_of(row.high), cell_of(row.seeds), std::move(row.finding)});
  }
  return table;
}

std::string claims_text(const Figure& table) {
  std::vector<commands::Row> rows = {{"figure", "paper", "", "ours", "", "95 % interval", "seeds"}};
  std::vector<std::string> sentences = {"claim"};
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(text_of_cell(cell));
    const std::string interval = cells[6].empty() ? "" : cells[6] + " to " + cells[7];
    rows.push_back({cells[0], cells[2], cells[3], cells[4], cells[5], interval, cells[8]});
    sentences.push_back(cells[1] + (cells[9].empty() ? "" : " (" + cells[9] + ")"));
  }
  return "claims of the paper: what its printed figures say, and what our runs say\n" +
         commands::aligned_before(rows, sentences);
}

}  // namespace fomoe::figures
