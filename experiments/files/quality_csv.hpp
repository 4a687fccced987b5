// Reads tables of measured perplexities. Lines "# key: value" state the source and the scope; a CSV follows.
#pragma once
#include <string>
#include <string_view>

#include "costmodel/value/quality.hpp"

namespace fomoe::scenario {

/// `name` is used in error messages. Throws FileError if the text is wrong.
costmodel::QualityTable parse_quality_csv(std::string_view text, const std::string& name);
costmodel::QualityTable read_quality_csv(const std::string& path);

/// Tables exp0 and exp1 of the FoMoE paper, in this order. They are compiled in from experiments/data.
costmodel::QualityTable paper_table();
/// One of the two, "exp0" or "exp1".
costmodel::QualityTable paper_table(const std::string& name);

}  // namespace fomoe::scenario
