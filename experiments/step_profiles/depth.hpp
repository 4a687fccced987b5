// A model at another number of layers.
#pragma once
#include <cstdint>

#include "costmodel/inputs/model_shape.hpp"

namespace fomoe::step_profiles {

/// Whether the two are one model at two numbers of layers: `shallow` is the beginning of `deep`, whose other
/// layers are of the same kinds. What counts layers, such as those with a window, follows their number.
bool one_model(const costmodel::ModelShape& shallow, const costmodel::ModelShape& deep);

/// The model with `layers` layers, at least those of `deep`: the layers that `deep` has beyond `shallow` are
/// repeated, and each number of layers of a kind continues along the line through the two. Throws
/// InputError("--layers") if such a number would not be whole. The two are one model.
costmodel::ModelShape at_depth(const costmodel::ModelShape& shallow, const costmodel::ModelShape& deep,
                               std::int64_t layers);

}  // namespace fomoe::step_profiles
