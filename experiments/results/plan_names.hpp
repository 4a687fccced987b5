// The JSON names of a plan's enumerations. Writer and reader share one table per enumeration, so they cannot
// disagree.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/plan/plan.hpp"

namespace fomoe::scenario {

template <class Value>
using Names = std::vector<std::pair<Value, std::string>>;

inline const Names<costmodel::NodeKind>& names_of(costmodel::NodeKind) {
  using enum costmodel::NodeKind;
  static const Names<costmodel::NodeKind> names = {{worker, "worker"}, {server, "server"}, {store, "store"}};
  return names;
}
inline const Names<costmodel::Content>& names_of(costmodel::Content) {
  using enum costmodel::Content;
  static const Names<costmodel::Content> names = {{parameter, "parameter"},
                                                  {gradient, "gradient"},
                                                  {pseudo_gradient, "pseudo_gradient"},
                                                  {coefficient, "coefficient"},
                                                  {moment1, "moment1"},
                                                  {moment2, "moment2"},
                                                  {outer_moment1, "outer_moment1"},
                                                  {outer_moment2, "outer_moment2"},
                                                  {activation, "activation"},
                                                  {sequences, "sequences"},
                                                  {training_state, "training_state"},
                                                  {key, "key"}};
  return names;
}
inline const Names<costmodel::TensorClass>& names_of(costmodel::TensorClass) {
  using enum costmodel::TensorClass;
  static const Names<costmodel::TensorClass> names = {{embedding, "embedding"}, {attention, "attention"},
                                                      {norm, "norm"},           {router, "router"},
                                                      {expert, "expert"},       {unembedding, "unembedding"}};
  return names;
}
inline const Names<costmodel::TrafficClass>& names_of(costmodel::TrafficClass) {
  using enum costmodel::TrafficClass;
  static const Names<costmodel::TrafficClass> names = {
      {dense, "dense"},           {expert_sync, "expert_sync"}, {migration, "migration"},  {data, "data"},
      {checkpoint, "checkpoint"}, {rejoin, "rejoin"},           {activation, "activation"}};
  return names;
}
inline const Names<costmodel::Pattern>& names_of(costmodel::Pattern) {
  using enum costmodel::Pattern;
  static const Names<costmodel::Pattern> names = {{all_reduce, "all_reduce"},
                                                  {reduce_scatter, "reduce_scatter"},
                                                  {all_gather, "all_gather"},
                                                  {all_to_all, "all_to_all"},
                                                  {all_to_all_broadcast, "all_to_all_broadcast"},
                                                  {reduce, "reduce"},
                                                  {broadcast, "broadcast"},
                                                  {point_to_point, "point_to_point"}};
  return names;
}
inline const Names<costmodel::Work>& names_of(costmodel::Work) {
  using enum costmodel::Work;
  static const Names<costmodel::Work> names = {{gradients, "gradients"},   {optimizer, "optimizer"},
                                               {whole_step, "whole_step"}, {outer_step, "outer_step"},
                                               {forward, "forward"},       {backward, "backward"}};
  return names;
}
inline const Names<costmodel::Collective>& names_of(costmodel::Collective) {
  // A plan represents a hierarchical all-reduce as several operations, so no operation has that collective.
  static const Names<costmodel::Collective> names = [] {
    Names<costmodel::Collective> all;
    for (const auto& [value, name] : enum_names(costmodel::Collective{}))
      if (value != costmodel::Collective::hierarchical) all.emplace_back(value, name);
    return all;
  }();
  return names;
}
inline const Names<costmodel::ElementType>& names_of(costmodel::ElementType) {
  static const Names<costmodel::ElementType> names = [] {
    Names<costmodel::ElementType> all;
    for (const auto& [value, name] : enum_names(costmodel::ElementType{})) all.emplace_back(value, name);
    return all;
  }();
  return names;
}

template <class Value>
std::string name_of(Value value) {
  for (const auto& [known, name] : names_of(value))
    if (known == value) return name;
  return "";
}

}  // namespace fomoe::scenario
