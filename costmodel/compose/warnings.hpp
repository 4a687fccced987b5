// What a user must know before the numbers of any answer about a scenario.
#pragma once
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"

namespace fomoe::costmodel {

/// An entry of a scenario's catalogue that is a warning as well: its steps were timed on another device.
inline constexpr const char* kOtherDevice = "device of the step times";

/// Sentences without a full stop, each once; empty if there is nothing to say. They name step profiles that
/// say that they are superseded or were disturbed.
std::vector<std::string> warnings_about(const Scenario& scenario);

/// Says that step times were taken while other programs used the device or the cores, and for how much of the
/// time; empty if they were not. `of_sites` are those of sites that differ. It is part of the origin of the
/// step time in answers that list origins.
std::string shared_devices(const ComputeSpec& compute, const std::vector<SiteCompute>& of_sites);

/// Says what it means that the rates of the platform were measured with more connections between two sites
/// than the scenario has; empty if they were not, or if one connection with Linux's default send buffer
/// carries them too.
std::string fewer_connections(const Scenario& scenario);

/// Says what more connections between two sites would carry, if losses or the buffers of sockets leave those
/// of the network model less than half of what the links carry; otherwise empty. Without loss_rate and
/// connections that are simulated, nothing is said.
std::string more_connections(const platforms::Platform& platform, const NetworkModel& network);

}  // namespace fomoe::costmodel
