#include "experiments/files/platform_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "experiments/scenario/toml/table_reader.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {
namespace {

std::string line_of(const Document& document, std::string_view table) {
  return document.place(std::string(table), document.root().get(table), nullptr);
}

class PlatformReader {
 public:
  PlatformReader(const std::string& path, platforms::UsedSites used)
      : document_(Document::read(path, "platform file", "platforms/eight-regions.toml")),
        used_sites_(std::move(used)) {}

  platforms::Platform read() {
    refuse_unknown_tables(document_, platform_file_keys(), {"site", "link", "path", "backbone"});
    const TableReader top(document_, platform_file_keys(), "", &document_.root());
    platform_.name = top.text("name");
    source_ = top.text("source");
    given_origin_ = top.boolean("measured") ? Origin::measured : Origin::assumed;
    if (top.has("connections")) platform_.measured_connections = top.small_count("connections");
    platform_.payload_rates = top.text("rates") == "payload";
    platform_.machine_paths = top.text("rates_of") == "machine";
    platform_.packet_bytes = top.quantity("mtu");
    if (top.has("paths_csv")) measured_ = read_paths_csv(document_.beside(top.text("paths_csv")));
    read_links();
    read_sites();
    read_default_path();
    fill_paths();
    read_given_paths();
    require_every_pair();
    share_links_of_sites();
    read_backbones();
    state_origins();
    return platform_;
  }

 private:
  void read_links() {
    for (const toml::table* table : find_tables(document_, "link")) {
      const TableReader reader(document_, platform_file_keys(), "link", table);
      platforms::SharedLink link{reader.text("name"), reader.quantity("bandwidth"),
                                 reader.boolean("per_flow")};
      for (const platforms::SharedLink& known : platform_.shared_links) {
        if (known.name == link.name)
          reader.refuse("name", fmt::format("\"{}\" twice", link.name), "each link once");
      }
      platform_.shared_links.push_back(std::move(link));
    }
    used_.assign(platform_.shared_links.size(), false);
    if (!used_.empty())
      platform_.provenance.push_back({"shared links", Origin::assumed, "given in the platform file"});
  }

  /// The links that a key of a [[site]] or a [[path]] names; empty if it is not given.
  std::vector<int> links_of(const TableReader& reader, std::string_view key) {
    std::vector<int> links;
    if (!reader.has(key)) return links;
    for (const std::string& name : reader.words(key)) {
      std::vector<std::string> known;
      for (const platforms::SharedLink& link : platform_.shared_links) known.push_back(link.name);
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        const std::string meant = nearest(name, known);
        reader.refuse(key, '"' + name + '"', "names of [[link]]s",
                      meant.empty() ? "" : "[\"" + meant + "\"]");
      }
      links.push_back(static_cast<int>(found - known.begin()));
      used_[static_cast<std::size_t>(links.back())] = true;
    }
    return links;
  }

  /// A route uses the links of the sender's site, those of its path, and those of the receiver's site, each
  /// once; but data that leave through a line and arrive through the same one cross it twice.
  void share_links_of_sites() {
    if (platform_.shared_links.empty()) return;
    for (int from = 0; from < platform_.size(); ++from) {
      for (int to = 0; to < platform_.size(); ++to) {
        if (from == to) continue;
        const auto on_path = links_of_path_.find({from, to});
        std::vector<int> links = out_links_[static_cast<std::size_t>(from)];
        const auto add = [&](const std::vector<int>& more) {
          for (const int link : more)
            if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
        };
        if (on_path != links_of_path_.end()) add(on_path->second);
        const auto before = static_cast<int>(links.size());
        const std::vector<int>& out = out_links_[static_cast<std::size_t>(from)];
        for (const int link : in_links_[static_cast<std::size_t>(to)]) {
          const bool twice = std::find(out.begin(), out.end(), link) != out.end();
          if (twice) both_ways_.insert(link);
          if (twice || std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
        }
        const int at_receiver = static_cast<int>(links.size()) - before;
        platform_.share(from, to, std::move(links), at_receiver);
      }
    }
    for (const int link : both_ways_)
      platform_.provenance.push_back({platform_.shared_links[static_cast<std::size_t>(link)].name,
                                      Origin::assumed,
                                      "in out_links and in_links: one rate for both directions, and data "
                                      "between two of its sites cross it "
                                      "twice"});
    const auto unused = std::find(used_.begin(), used_.end(), false);
    if (unused == used_.end()) return;
    const platforms::SharedLink& link =
        platform_.shared_links[static_cast<std::size_t>(unused - used_.begin())];
    fail(line_of(document_, "link"), "link.name", fmt::format("\"{}\", which no route uses", link.name),
         "links that a [[site]] or a [[path]] names",
         fmt::format("out_links = [\"{}\"] in a [[site]]", link.name));
  }

  void read_sites() {
    for (const toml::table* table : find_tables(document_, "site")) {
      const TableReader reader(document_, platform_file_keys(), "site", table);
      platforms::Site site;
      site.name = reader.text("name");
      if (reader.has("region")) site.region = reader.text("region");
      if (reader.has("queue")) site.queue_s = reader.quantity("queue");
      site.compute_factor = reader.number("compute_factor");
      if (index_of(site.name))
        reader.refuse("name", fmt::format("\"{}\" twice", site.name), "each site once");
      add_name(site.name);
      if (names_.size() > 1024) reader.refuse("name", "more than 1024 sites", "at most 1024 sites");
      const bool given = reader.has("uplink") || reader.has("downlink");
      site.machine_uplink = site.machine_downlink =
          reader.has("rates_of") ? reader.text("rates_of") == "machine" : platform_.machine_paths && !given;
      site.uplink_bytes_per_s = link(reader, "uplink", site.name, /*out=*/true);
      site.downlink_bytes_per_s = link(reader, "downlink", site.name, /*out=*/false);
      platform_.sites.push_back(site);
      out_links_.push_back(links_of(reader, "out_links"));
      in_links_.push_back(links_of(reader, "in_links"));
    }
    read_measured_sites();
    if (names_.empty())
      fail(document_.path() + ":1", "site", "no site", "at least one [[site]], or paths_csv", "[[site]]");
    // Default rates are the largest measured rates between the sites, so that all are read first.
    std::vector<double> out(names_.size()), in(names_.size());  // the largest measured rate of each site
    for (const auto& [pair, path] : measured_) {
      const auto from = index_of(pair.first), to = index_of(pair.second);
      if (!from || !to || from == to) continue;
      out[*from] = std::max(out[*from], path.bandwidth_bytes_per_s);
      in[*to] = std::max(in[*to], path.bandwidth_bytes_per_s);
    }
    for (std::size_t i = 0; i < platform_.sites.size(); ++i) {
      platforms::Site& site = platform_.sites[i];
      if (site.uplink_bytes_per_s == 0) site.uplink_bytes_per_s = measured_rate(site.name, "uplink", out[i]);
      if (site.downlink_bytes_per_s == 0)
        site.downlink_bytes_per_s = measured_rate(site.name, "downlink", in[i]);
    }
  }

  /// Every place that paths_csv names is a site, behind those with a [[site]].
  void read_measured_sites() {
    for (const auto& entry : measured_) {
      for (const std::string& name : {entry.first.first, entry.first.second}) {
        if (index_of(name)) continue;
        platforms::Site site;
        site.name = name;
        site.machine_uplink = site.machine_downlink = platform_.machine_paths;
        add_name(name);
        measured_links_ = true;
        platform_.sites.push_back(site);
        out_links_.emplace_back();
        in_links_.emplace_back();
      }
    }
  }

  /// Returns the rate that the file gives. Returns 0 if the largest measured rate is to be used instead.
  double link(const TableReader& reader, std::string_view key, const std::string& site, bool out) {
    if (reader.has(key)) {
      given_links_ = true;
      return reader.quantity(key);
    }
    const bool measured = std::any_of(measured_.begin(), measured_.end(), [&](const auto& entry) {
      return (out ? entry.first.first : entry.first.second) == site;
    });
    if (!measured) {
      std::vector<std::string> known;
      for (const auto& entry : measured_) known.push_back(out ? entry.first.first : entry.first.second);
      const std::string meant = nearest(site, known),
                        got = measured_.empty() ? ""
                                                : fmt::format(", and paths_csv has no path of \"{}\"", site);
      reader.refuse(key, "nothing" + got, "a data rate with a unit, or a site that paths_csv has measured",
                    meant.empty() ? "" : '"' + meant + '"');
    }
    measured_links_ = true;
    return 0;
  }

  double measured_rate(const std::string& site, const char* key, double largest) {
    if (largest == 0 && is_used(site)) {
      fail(line_of(document_, "site"), std::string("site.") + key,
           fmt::format("no measured path between \"{}\" and another site of the platform", site),
           "a data rate with a unit", std::string(key) + " = \"10Gbps\"");
    }
    return largest;
  }

  void read_default_path() {
    const toml::table* table = find_table(document_, "default_path");
    if (table == nullptr) return;
    const TableReader reader(document_, platform_file_keys(), "default_path", table);
    default_path_ =
        platforms::Path{reader.quantity("latency"),
                        reader.has("bandwidth") ? reader.quantity("bandwidth") : platforms::kUnlimited};
  }

  void fill_paths() {
    const int n = platform_.size();
    platform_.paths = platforms::Paths(n, default_path_.value_or(platforms::Path{}));
    covered_.assign(pairs(), false);
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from == to) continue;
        const auto found = measured_.find({names_[from], names_[to]});
        if (found != measured_.end()) {
          set(from, to, {found->second.latency_s, found->second.bandwidth_bytes_per_s});
          measured_paths_ = true;
        } else if (default_path_) {
          set(from, to, *default_path_);
        }
      }
    }
  }

  void read_given_paths() {
    std::vector<bool> given(pairs(), false);
    for (const toml::table* table : find_tables(document_, "path")) {
      const TableReader reader(document_, platform_file_keys(), "path", table);
      const int from = end_of(reader, "from"), to = end_of(reader, "to");
      const auto position = static_cast<std::size_t>(from * platform_.size() + to);
      if (from == to) reader.refuse("to", "the sending site itself", "another site");
      if (given[position])
        reader.refuse("to", fmt::format("the path from {} to {} twice", names_[from], names_[to]),
                      "each path once");
      given[position] = true;
      platforms::Path path = covered_[position] ? platform_.path(from, to) : platforms::Path{};
      path.latency_s = reader.quantity("latency");
      if (reader.has("bandwidth")) path.bandwidth_bytes_per_s = reader.quantity("bandwidth");
      if (reader.has("connection_bandwidth"))
        path.connection_bytes_per_s = reader.quantity("connection_bandwidth");
      set(from, to, path);
      links_of_path_[{from, to}] = links_of(reader, "links");
      given_paths_ = true;
    }
  }

  int end_of(const TableReader& reader, std::string_view key) {
    const std::string name = reader.text(key);
    if (const auto index = index_of(name)) return *index;
    const std::string meant = nearest(name, names_);
    reader.refuse(key, '"' + name + '"', "the name of a site: \"" + joined(names_, "\", \"") + '"',
                  meant.empty() ? "" : '"' + meant + '"');
  }

  void require_every_pair() {
    for (int from = 0; from < platform_.size(); ++from) {
      for (int to = 0; to < platform_.size(); ++to) {
        if (from == to || covered_[static_cast<std::size_t>(from * platform_.size() + to)]) continue;
        if (!is_used(names_[from]) || !is_used(names_[to])) continue;
        fail(document_.path() + ":1", "path",
             fmt::format("no path from \"{}\" to \"{}\"", names_[from], names_[to]),
             "every ordered pair of sites in paths_csv, a [[path]] or [default_path], or sites in "
             "platform.use_sites that have paths",
             "[default_path] with latency = \"25ms\"");
      }
    }
  }

  void read_backbones() {
    for (const toml::table* table : find_tables(document_, "backbone")) {
      const TableReader reader(document_, platform_file_keys(), "backbone", table);
      const std::string from = region_of(reader, "from"), to = region_of(reader, "to");
      std::set<std::pair<std::string, std::string>> directions = {{from, to}, {to, from}};
      for (const auto& [a, b] : directions) {
        if (!backbones_.insert({a, b}).second)
          reader.refuse("to", fmt::format("the regions {} and {} twice", from, to),
                        "each pair of regions once");
        platform_.shared_links.push_back(
            {fmt::format("backbone {} to {}", a, b), reader.quantity("bandwidth")});
        share_backbone(a, b, static_cast<int>(platform_.shared_links.size()) - 1);
      }
    }
    if (!backbones_.empty())
      platform_.provenance.push_back({"backbones of regions", Origin::assumed, "given in the platform file"});
  }

  std::string region_of(const TableReader& reader, std::string_view key) {
    std::string name = reader.text(key);
    std::vector<std::string> regions;
    for (const platforms::Site& site : platform_.sites) {
      if (site.region == name && !name.empty()) return name;
      if (!site.region.empty()) regions.push_back(site.region);
    }
    const std::string meant = nearest(name, regions);
    reader.refuse(key, '"' + name + '"', "the region of a [[site]]", meant.empty() ? "" : '"' + meant + '"');
  }

  void share_backbone(const std::string& from_region, const std::string& to_region, int link) {
    for (int from = 0; from < platform_.size(); ++from) {
      for (int to = 0; to < platform_.size(); ++to) {
        if (from == to || platform_.sites[static_cast<std::size_t>(from)].region != from_region ||
            platform_.sites[static_cast<std::size_t>(to)].region != to_region)
          continue;
        const std::span<const int> before = platform_.shared_by(from, to);
        const auto at_receiver = static_cast<int>(platform_.shared_at_receiver(from, to).size());
        std::vector<int> links(before.begin(), before.end());
        links.insert(links.end() - at_receiver, link);
        platform_.share(from, to, std::move(links), at_receiver);
      }
    }
  }

  void state_origins() {
    const auto state = [&](const char* what, Origin origin, const std::string& detail) {
      platform_.provenance.push_back({what, origin, detail});
    };
    const std::string of_file = fmt::format("{}: {}", platform_.name, source_);
    if (measured_paths_) {
      state("path rates", Origin::measured, of_file);
      state(
          "path latencies", Origin::measured,
          platform_.name + ", from the same source; the one-way latency is half of the measured round trip");
    }
    if (given_paths_) state("individually given paths", given_origin_, of_file);
    if (default_path_) state("other paths", Origin::assumed, of_file + "; [default_path]");
    if (measured_links_) {
      state("uplinks and downlinks", Origin::computed,
            "largest measured rate out of and into each site, among the platform's sites");
    }
    if (given_links_) state("uplinks and downlinks", given_origin_, "given in the platform file; " + of_file);
  }

  /// Whether the scenario uses the site.
  [[nodiscard]] bool is_used(const std::string& name) const {
    return used_sites_.has(name, index_of(name).value_or(0));
  }

  std::optional<int> index_of(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

  void add_name(const std::string& name) {
    index_.emplace(name, static_cast<int>(names_.size()));
    names_.push_back(name);
  }

  [[nodiscard]] std::size_t pairs() const { return platform_.sites.size() * platform_.sites.size(); }

  void set(int from, int to, const platforms::Path& path) {
    platform_.paths.set(from, to, path);
    covered_[static_cast<std::size_t>(from * platform_.size() + to)] = true;
  }

  Document document_;
  platforms::UsedSites used_sites_;
  platforms::Platform platform_;
  std::string source_;
  Origin given_origin_ = Origin::assumed;  // origin of the file's values other than [default_path]
  MeasuredPaths measured_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> index_;          // of each name
  std::vector<std::vector<int>> out_links_, in_links_;  // [site]: shared links by index
  std::map<std::pair<int, int>, std::vector<int>> links_of_path_;
  std::vector<bool> used_;                                   // [shared link]
  std::set<int> both_ways_;                                  // shared links that data may cross twice
  std::set<std::pair<std::string, std::string>> backbones_;  // pairs of regions
  std::optional<platforms::Path> default_path_;
  std::vector<bool> covered_;  // whether a path is described; [from · sites + to]
  bool measured_paths_ = false, given_paths_ = false, measured_links_ = false, given_links_ = false;
};

}  // namespace

platforms::Platform read_platform_file(const std::string& path, const platforms::UsedSites& used) {
  return PlatformReader(path, used).read();
}

}  // namespace fomoe::scenario
