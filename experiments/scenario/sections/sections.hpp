// Reads the tables of a scenario file, with one function per table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/files/accelerators.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "experiments/scenario/toml/document.hpp"

namespace fomoe::scenario {

// Each function reads a table into `scenario`: the members that rows of keys name, and what rules join.
// Tables that the scenario does not have leave their members empty.

/// Appends to the catalogue what was guessed about the model.
void read_model(const Document& document, costmodel::Scenario& scenario);
/// After the model.
void read_workload(const Document& document, costmodel::Scenario& scenario);
/// After the model and the platform.
void read_strategy(const Document& document, costmodel::Scenario& scenario);
/// The accelerator that compute.accelerator names, or nullptr.
const Accelerator* read_accelerator(const Document& document);
/// If `required` is false, a missing profile file gives a profile without points. A published training speed
/// is converted to the MFU of `model`.
costmodel::ComputeSpec read_compute(const Document& document, const costmodel::ModelShape& model,
                                    bool required);
/// The peak FLOP/s of one GPU that the scenario gives, itself or by naming an accelerator.
std::optional<double> read_peak_flops(const Document& document);
/// Sets the peak of one GPU: the scenario's, or that of a profile's device if the catalogue has it.
void add_peak(const Document& document, costmodel::Scenario& scenario);
/// After `compute`; activation checkpointing is on if the steps of its profile have it. Appends to the
/// catalogue each value that comes from the catalogue of accelerators, with its source. read_energy does the
/// same.
void read_site_gpus(const Document& document, costmodel::Scenario& scenario);
/// Reads the [[site]] tables and workload.batch into `scenario`, whose other tables were read before.
/// `notes_of_all_sites` are those of the scenario that hold for all sites. Throws InputError if no balanced
/// batch exists.
void read_sites(const Document& document, costmodel::Scenario& scenario,
                const std::vector<Provenance>& notes_of_all_sites, bool compute_required);
/// Refuses keys of the variation of steps that contradict each other.
void check_step_variation(const Document& document);
/// The seed, which was read before, is for generated sites.
void read_platform(const Document& document, costmodel::Scenario& scenario);
/// Reads [platform.store] into the platform. read_platform() calls it, before rates are scaled.
void read_store(const Document& document, costmodel::Scenario& scenario);
/// Adds the prices of [platform.store]. Without [prices], refuse_store_prices() refuses them.
void add_store_prices(const Document& document, costmodel::Prices& prices);
void refuse_store_prices(const Document& document);
/// All sites of the platform's file, or as many equal sites as a scenario may have; for their names.
platforms::Platform read_all_sites(const Document& document);
void read_network_model(const Document& document, costmodel::Scenario& scenario);
/// If the scenario gives no payload_rate, sets the one that the step profiles measured with the scenario's
/// payloads: the slowest, if sites have profiles of their own.
void add_measured_payload_rate(costmodel::Scenario& scenario);
// After the platform:
/// The terms of a Linux host that follow from the packets and rates of the platform's file, where the
/// scenario does not give them.
void set_terms_of_packets(const Document& document, costmodel::Scenario& scenario);
void read_traffic(const Document& document, costmodel::Scenario& scenario);
void read_failures(const Document& document, costmodel::Scenario& scenario);
/// Returns nothing if the scenario does not have the table.
std::optional<costmodel::Prices> read_prices(const Document& document, const platforms::Platform& platform);
void read_energy(const Document& document, costmodel::Scenario& scenario);
std::optional<costmodel::QualityModel> read_quality(const Document& document);

/// Removes keys of the file that an override replaces by an alternative: `--set compute.step_time=1s` on a
/// scenario with a profile replaces the profile.
void displace_alternatives(Document& document);

}  // namespace fomoe::scenario
