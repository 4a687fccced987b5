// The scenario's rules for rounds that go on without some sites.
#pragma once
#include "costmodel/plan/attendance.hpp"

namespace fomoe::costmodel {

/// Throws InputError if the plan cannot be executed without some of its nodes.
AttendanceRules attendance_rules(const Scenario& scenario, const Plan& plan);

}  // namespace fomoe::costmodel
