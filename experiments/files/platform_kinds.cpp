#include <algorithm>
#include <string_view>

#include "experiments/files/platform_file.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

/// What the text is; empty if it may be a platform.
std::string kind_of(const std::string& path, std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin);
  if (text.find("<graphml") != std::string_view::npos) return "a graph in GraphML";
  if (text.starts_with("graph [") || text.starts_with("graph\n") || text.starts_with("Creator \"") ||
      path.ends_with(".gml"))
    return "a graph in GML";
  if (text.starts_with("PING ") || text.find("rtt min/avg/max") != std::string_view::npos)
    return "the output of ping";
  if (text.starts_with("[ ID") || text.starts_with("Connecting to host")) return "the output of iperf3";
  if (text.starts_with('{') && text.find("\"sum_received\"") != std::string_view::npos)
    return "a report of iperf3";
  if (text.starts_with("{\"event\":")) return "the events of iperf3 --json-stream";
  const std::string_view line = text.substr(0, text.find('\n'));
  if (path.ends_with(".csv") || (std::count(line.begin(), line.end(), ',') > 0 && !line.starts_with('#') &&
                                 line.find('=') == std::string_view::npos))
    return "a table (CSV)";
  return "";
}

}  // namespace

void refuse_other_kinds(const std::string& path) {
  const std::string what = kind_of(path, whole_file(path).value_or(""));
  if (what.empty()) return;
  fail(path + ":1", "platform", what,
       "a platform file in TOML, a SimGrid platform with the ending .xml, or a TOML file that names a CSV of "
       "measured paths as paths_csv (platforms/README.md)",
       "platforms/two-offices.toml");
}

}  // namespace fomoe::scenario
