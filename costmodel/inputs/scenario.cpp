#include "costmodel/inputs/scenario.hpp"

#include <cstdlib>

namespace fomoe::costmodel {

const char* to_string(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::fixed:
      return "fixed";
    case PlacementKind::random:
      return "random";
    case PlacementKind::affinity:
      return "affinity";
  }
  std::abort();
}

const char* to_string(OuterOptimizer optimizer) {
  switch (optimizer) {
    case OuterOptimizer::nesterov:
      return "nesterov";
    case OuterOptimizer::adam:
      return "adam";
    case OuterOptimizer::yogi:
      return "yogi";
    case OuterOptimizer::average:
      return "average";
    case OuterOptimizer::local_adamw:
      return "local_adamw";
  }
  std::abort();
}

const char* to_string(OuterStateOnMigration what) {
  return what == OuterStateOnMigration::transfer ? "transfer" : "reset_all_owners";
}

const char* to_string(Granularity granularity) {
  return granularity == Granularity::flat ? "flat" : "tensor";
}

const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::ring:
      return "ring";
    case Collective::direct:
      return "direct";
    case Collective::hierarchical:
      return "hierarchical";
    case Collective::recursive:
      return "recursive";
  }
  return "";
}

const char* to_string(RouterModel router) {
  switch (router) {
    case RouterModel::uniform:
      return "uniform";
    case RouterModel::hash:
      return "hash";
    case RouterModel::expert_choice:
      return "expert_choice";
  }
  return "";
}

const char* to_string(RingOrder order) { return order == RingOrder::given ? "given" : "best"; }

}  // namespace fomoe::costmodel
