// Memory and loads of a scenario whose sites are alike, for tests.
#pragma once
#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/at_site.hpp"

namespace fomoe::costmodel {

inline SiteCounts site_counts(const Scenario& scenario) { return counts_of(scenario).sites.front(); }

inline MemoryBytes memory_per_gpu(const Scenario& scenario) {
  const SiteCounts site = site_counts(scenario);
  return memory_per_gpu(site.model, site.load);
}
inline MemoryBytes memory_per_gpu(const Scenario& scenario, double micro_batch_sequences) {
  const SiteCounts site = site_counts(scenario);
  return memory_per_gpu(site.model, site.load, micro_batch_sequences);
}
inline MemoryBytes memory_per_site(const Scenario& scenario) {
  const SiteCounts site = site_counts(scenario);
  return memory_per_site(site.model, site.load);
}
inline double host_bytes_per_site(const Scenario& scenario) {
  const SiteCounts site = site_counts(scenario);
  return host_bytes_per_site(site.model, site.load);
}
inline std::optional<std::int64_t> largest_micro_batch_sequences(const Scenario& scenario) {
  const SiteCounts site = site_counts(scenario);
  return largest_micro_batch_sequences(site.model, site.load);
}
inline Provenance memory_provenance(const Scenario& scenario) {
  const SiteCounts site = site_counts(scenario);
  return memory_provenance(site.model, site.load);
}
inline GpuMemory fullest_gpu(const Scenario& scenario) { return fullest_gpu(counts_of(scenario)); }
inline int fullest_site(const Scenario& scenario) { return static_cast<int>(counts_of(scenario).fullest); }

}  // namespace fomoe::costmodel
