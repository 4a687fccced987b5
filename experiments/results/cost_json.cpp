#include "experiments/results/cost_json.hpp"

#include <cmath>

#include "costmodel/value/goodput.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::scenario {
namespace {

Json traffic_json(const costmodel::ExtraTraffic& traffic, const platforms::Platform& platform) {
  Json json = Json::object();
  const auto site = [&](const char* key, const std::optional<int>& index) {
    if (index) json[key] = platform.sites[static_cast<std::size_t>(*index)].name;
  };
  site("data_site", traffic.data_site);
  if (traffic.data_site) json["data_bytes_per_token"] = traffic.data_bytes_per_token;
  site("checkpoint_site", traffic.checkpoint_site);
  if (traffic.checkpoint_site) json["checkpoint_rounds"] = traffic.checkpoint_rounds;
  site("rejoin_site", traffic.rejoin_site);
  if (traffic.rejoin_site) json["rejoin_rounds"] = traffic.rejoin_rounds;
  return json;
}

Json tiers_json(const std::vector<costmodel::EgressTier>& tiers) {
  Json rows = Json::array();
  for (const costmodel::EgressTier& tier : tiers) {
    Json row = {{"price_per_byte", tier.price_per_byte}};
    if (std::isfinite(tier.up_to_bytes)) row["up_to_bytes_per_month"] = tier.up_to_bytes;
    rows.push_back(row);
  }
  return rows;
}

Json prices_json(const costmodel::Prices& prices, const platforms::Platform& platform) {
  Json sites = Json::array();
  for (std::size_t i = 0; i < prices.sites.size(); ++i) {
    const costmodel::SitePrices& site = prices.sites[i];
    Json entry = {{"site", platform.sites[i].name},
                  {"gpu_price_per_s", site.gpu_price_per_s},
                  {"port_price_per_month", site.port_price_per_month},
                  {"energy_price_per_joule", site.energy_price_per_joule},
                  {"egress", tiers_json(site.egress)}};
    for (const costmodel::EgressTo& to : site.egress_to)
      entry["egress_to"].push_back({{"sites", to.sites}, {"egress", tiers_json(to.tiers)}});
    if (site.pricing == costmodel::Pricing::owned) entry["pricing"] = "owned";
    if (site.pricing == costmodel::Pricing::spot) entry["pricing"] = "spot";
    sites.push_back(entry);
  }
  Json json = {{"currency", prices.currency}, {"as_of", prices.as_of}, {"sites", sites}};
  if (platform.store)
    json["store"] = {{"price_per_request", prices.store.price_per_request},
                     {"price_per_byte", prices.store.price_per_byte}};
  return json;
}

Json quality_json(const costmodel::QualityModel& model) {
  if (const auto* penalty = std::get_if<costmodel::AssumedPenalty>(&model))
    return {{"equal_loss_factor", penalty->equal_loss_factor}};
  if (const auto* published = std::get_if<costmodel::PublishedQuality>(&model))
    return {{"model", "published"}, {"mixtures", published->refuse_mixtures ? "refuse" : "dense-rows"}};
  const auto* table = std::get_if<costmodel::QualityTable>(&model);
  if (table == nullptr) return {{"model", "diloco-scaling-law"}};
  Json scope = Json::object();
  for (const auto& [name, value] : table->scope) scope[name] = value;
  if (table->payload_dtype) scope["payload_dtype"] = costmodel::to_string(*table->payload_dtype);
  return {{"source", table->source},
          {"scope", scope},
          {"rows", table->rows.size()},
          {"interpolate", table->interpolate}};
}

Json cost_json(const costmodel::Cost& cost) {
  Json json = Json::object();
  if (!cost.currency.empty()) {
    json = {{"currency", cost.currency},       {"as_of", cost.as_of},
            {"cost_total", cost.cost_total},   {"gpu_cost", cost.gpu_cost},
            {"egress_cost", cost.egress_cost}, {"port_cost", cost.port_cost},
            {"energy_cost", cost.energy_cost}};
    if (cost.store_cost != 0) json["store_cost"] = cost.store_cost;
  }
  if (cost.energy_kwh) json["energy_kwh"] = *cost.energy_kwh;
  return json;
}

/// The factor on tokens to equal loss, and amounts at it. null: no number of tokens reaches it.
Json to_equal_loss_json(const costmodel::RunReport& report) {
  const costmodel::EqualLossRange& range = *report.quality->equal_loss_range;
  const costmodel::RunAmounts of_run = costmodel::amounts_of(report);
  const auto at_factors = [&](const auto& at) {
    return Json{{"low", at(range.low)},
                {"centre_low", at(range.centre_low)},
                {"centre_high", at(range.centre_high)},
                {"high", at(range.high)}};
  };
  const auto times = [&](double amount) {
    return at_factors([&](double factor) { return finite(factor * amount); });
  };
  Json json = {{"factor", times(1)},
               {"tokens", times(static_cast<double>(report.tokens))},
               {"rounds", times(static_cast<double>(report.round.count))},
               {"wall_clock_s", times(of_run.wall_clock_s)}};
  if (of_run.cost)
    json["cost"] = at_factors([&](double factor) { return finite(*of_run.cost_of_more_tokens(factor)); });
  return json;
}

Json answered_quality_json(const costmodel::RunReport& report) {
  const costmodel::Quality& quality = *report.quality;
  Json json = {{"known", quality.known}, {"source", quality.source}};
  if (quality.known) {
    json["perplexity"] = quality.perplexity;
    json["interpolated"] = quality.interpolated;
    if (quality.plus_minus) json["plus_minus"] = *quality.plus_minus;
  } else {
    json["reason"] = quality.reason;
  }
  if (quality.published) {
    json["loss"] = loss_json(quality.published->level);
    json["loss"]["rounds"] = quality.published->setting.rounds();
    json["loss"]["nearest"] = quality.published->nearest;
  }
  if (quality.equal_loss_range) json["to_equal_loss"] = to_equal_loss_json(report);
  if (quality.equal_loss_factor) {
    json["equal_loss_factor"] = *quality.equal_loss_factor;
    const costmodel::RunAmounts of_run = costmodel::amounts_of(report);
    json["time_to_equal_loss_s"] = finite(*quality.equal_loss_factor * of_run.wall_clock_s);
    if (const auto cost = of_run.cost_of_more_tokens(*quality.equal_loss_factor))
      json["cost_to_equal_loss"] = finite(*cost);
  }
  return json;
}

}  // namespace

void add_cost_and_quality(Json& json, const costmodel::Scenario& scenario) {
  json["traffic"] = traffic_json(scenario.traffic, scenario.platform);
  if (scenario.prices) json["prices"] = prices_json(*scenario.prices, scenario.platform);
  if (scenario.power) json["energy"] = members_json("energy", scenario);
  if (scenario.quality) json["quality"] = quality_json(*scenario.quality);
}

Json loss_json(const costmodel::LossEstimate& estimate) {
  if (!estimate.known()) return {{"known", false}, {"reasons", estimate.reasons}};
  return {{"known", true},
          {"points", estimate.points},
          {"low", estimate.low()},
          {"high", estimate.high()},
          {"equal", estimate.equal()},
          {"probability_higher", estimate.probability_above_0()},
          {"studies", estimate.studies},
          {"rows", estimate.rows},
          {"notes", estimate.notes}};
}

void add_cost_and_quality(Json& json, const costmodel::RunReport& report) {
  if (report.store)
    json["store"] = {{"bytes_received", report.store->bytes_received},
                     {"bytes_sent", report.store->bytes_sent},
                     {"requests", report.store->requests}};
  if (report.cost) json["cost"] = cost_json(*report.cost);
  if (report.quality) json["quality"] = answered_quality_json(report);
}

}  // namespace fomoe::scenario
