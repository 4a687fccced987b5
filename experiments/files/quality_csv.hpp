// Tables of measured perplexities: lines "# key: value" with the source and the scope, then a CSV.
#pragma once
#include <string>
#include <string_view>

#include "costmodel/value/quality.hpp"

namespace fomoe::scenario {

/// `name` is for messages. Throws FileError where the text is wrong.
costmodel::QualityTable parse_quality_csv(std::string_view text, const std::string& name);
costmodel::QualityTable read_quality_csv(const std::string& path);

/// Tables exp0 and exp1 of the FoMoE paper, in this order. They are files of experiments/data, compiled in.
costmodel::QualityTable paper_table();

}  // namespace fomoe::scenario
