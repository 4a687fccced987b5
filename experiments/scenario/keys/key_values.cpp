#include <fmt/format.h>

#include <algorithm>

#include "costmodel/inputs/model_shape.hpp"
#include "costmodel/inputs/strategy_keys.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/text/suggest.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::scenario {

namespace {

/// The names of a choice of [strategy] that is one enumeration; empty for other keys.
std::vector<std::string> strategy_choices(std::string_view name) {
  std::vector<std::string> names;
  for (const costmodel::StrategyKey& key : costmodel::kStrategyKeys) {
    if (key.name != name) continue;
    std::visit(
        [&]<class Value>(Value costmodel::Strategy::*) {
          if constexpr (costmodel::NamedEnum<Value>) names = costmodel::all_names<Value>();
        },
        key.field);
  }
  return names;
}

}  // namespace

std::vector<std::string> choices(const Key& key) {
  std::vector<std::string> names;
  if (key.table == "strategy") names = strategy_choices(key.name);
  if (!names.empty()) return names;
  if (key.name == "preset" && key.table == "model") {
    for (const auto& shape : costmodel::presets()) names.push_back(shape.name);
  } else if (key.name == "method") {
    for (const auto& method : costmodel::methods()) names.emplace_back(method.name);
  } else if (key.name == "pricing") {
    names = {"on_demand", "spot", "owned"};
  } else if (key.table == "quality") {
    names = {"paper-table", "diloco-scaling-law"};
  } else if (key.name == "outer_state_on") {
    names = costmodel::all_names<costmodel::OuterStateOn>();
  } else if (key.table == "trainer" && key.name == "device") {
    names = {"auto", "cpu", "cuda"};
  } else if (key.table == "trainer" && key.name == "dtype") {
    names = {"fp32", "bf16"};
  } else if (key.table == "trainer" && key.name == "cuda_graph") {
    names = {"auto", "on", "off"};
  } else if (key.table == "trainer" && key.name == "data_split") {
    names = {"shared", "iid", "domain"};
  } else if (key.table == "trainer" && key.name == "transport") {
    names = {"gloo", "nccl", "auto"};
  } else if (key.table == "trainer" && key.name == "on_lost_site") {
    names = {"stop", "wait", "drop"};
  } else if (key.table == "trainer" && key.name == "rate_transfer") {
    names = {"complete_p", "none"};
  } else if (key.table == "trainer" && key.name == "schedule") {
    names = {"constant", "cosine", "wsd"};
  } else if (key.table == "trainer" && key.name == "on_divergence") {
    names = {"stop", "skip_step"};
  } else if ((key.table == "compute" || key.table == "site") && key.name == "dtype") {
    names = {"bf16", "fp16", "fp8", "tf32", "fp32"};
  } else if (key.name == "straggler_lasts") {
    names = costmodel::all_names<costmodel::StragglerLasts>();
  } else if (key.name == "batch") {
    names = {"equal", "balanced"};
  } else if (key.name == "kind") {
    names = {"top_k"};
  } else if (key.name == "ring_model") {
    names = costmodel::all_names<costmodel::RingModel>();
  } else if (key.table == "network_model" && key.name == "host") {
    names = costmodel::all_names<costmodel::Host>();
  } else if (key.name == "congestion_control") {
    names = costmodel::all_names<costmodel::CongestionControl>();
  } else if (key.name == "uplink_queue") {
    names = costmodel::all_names<costmodel::UplinkQueue>();
  } else if (key.name == "policy") {
    names = costmodel::all_names<costmodel::FailurePolicy>();
  } else if (key.name == "preset" && key.table == "platform") {
    names = {"consumer", "two-continents"};
  } else if (key.name == "payload_dtype" || key.name == "parameter_dtype" || key.name == "dispatch_dtype") {
    names = costmodel::all_names<costmodel::ElementType>();
    std::erase(names, "int32");  // the format of masked payloads, which nobody chooses
  }
  return names;
}

std::string expected_value(const Key& key) {
  const auto positive = [](const char* what, Quantity quantity) {
    return fmt::format("{} above zero in quotes, with a unit ({})", what, known_units(quantity));
  };
  switch (key.kind) {
    case Kind::text:
      return "a string in quotes";
    case Kind::choice:
      return "one of \"" + joined(choices(key), "\", \"") + '"';
    case Kind::count:
      if (key.max == 0) return "0, which is the only available value";
      return key.max >= 1e12 ? fmt::format("a whole number of at least {:.0f}", key.min)
                             : fmt::format("a whole number from {:.0f} to {:.0f}", key.min, key.max);
    case Kind::boolean:
      return "true or false";
    case Kind::rate:
      return positive("a data rate", Quantity::rate);
    case Kind::latency:
      return fmt::format("a time of zero or more in quotes, with a unit ({})",
                         known_units(Quantity::duration));
    case Kind::duration:
      return positive("a time", Quantity::duration);
    case Kind::size:
      return positive("a size", Quantity::size);
    case Kind::flop_rate:
      return positive("a FLOP rate", Quantity::flop_rate);
    case Kind::share:
      return fmt::format("a number above 0 and up to {}, or a percentage", std::min(1.0, key.max));
    case Kind::power:
      return positive("a power", Quantity::power);
    case Kind::money:
      return "a price of zero or more in quotes, with a currency of three capital letters";
    case Kind::factor:
      return "a number of at least 1";
    case Kind::words:
      return "a list of strings, in brackets";
    case Kind::multiple:
      return fmt::format("a number above 0 and up to {:.0f}", key.max);
  }
  return "";
}

std::string dotted(std::string_view table, std::string_view name) {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

std::string example_line(const Key& key) { return fmt::format("{} = {}", key.name, key.example); }

}  // namespace fomoe::scenario
