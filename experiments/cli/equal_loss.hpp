// The loss against data-parallel training, and amounts to equal loss, as text.
#pragma once
#include <functional>
#include <string>

#include "costmodel/report/run_report.hpp"

namespace fomoe::commands {

/// "+1.95 %", always with its sign.
std::string signed_points(double points);
/// "+1.95 % (80 % interval +0.31 to +3.60 %; 4 studies)".
std::string points_text(const costmodel::LossEstimate& estimate);
/// "+1.95 ± 1.65 %", or "unknown". Empty if no published runs were asked.
std::string loss_text(const costmodel::RunReport& report);

/// "1.41 to 1.49 (80 % interval 1.05 to 2.17)" for a function that formats the amount at a factor. The centre
/// alone if there is no interval. "unlimited" stands for what no number of tokens reaches.
std::string range_text(const costmodel::EqualLossRange& range,
                       const std::function<std::string(double)>& at_factor);
/// The time to the loss of data-parallel training; empty if nothing is known of it.
std::string time_to_equal_loss(const costmodel::RunReport& report);

}  // namespace fomoe::commands
