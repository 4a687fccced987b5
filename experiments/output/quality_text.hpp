// The quality of the trained model as text, and the table of `fomoe list quality`.
#pragma once
#include <string>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// Perplexity or loss, and amounts to equal loss. Says clearly what is unknown. The report has a quality.
std::string quality_text(const costmodel::RunReport& report);

/// All published rows of losses, those closest to `near` first if it is given.
std::string published_quality_table(const costmodel::LossSetting* near);

}  // namespace fomoe::commands
