#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/figures/figure.hpp"
#include "experiments/figures/page/figure_page.hpp"
#include "experiments/figures/trained/claims.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"
#include "platforms/support/atomic_file.hpp"
#include "platforms/support/file_claims.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

std::string list_text() {
  std::string text =
      "fomoe reproduce ID --output FOLDER writes ID.csv, ID.json and a page, ID.md. ID is all, or one "
      "of:\n\n";
  for (const figures::Experiment& experiment : figures::experiments())
    text += fmt::format("{:<28}{}\n", experiment.id, experiment.sentence);
  return text;
}

std::vector<const figures::Experiment*> chosen(const std::string& id) {
  std::vector<const figures::Experiment*> list;
  std::vector<std::string> names = {"all"};
  for (const figures::Experiment& experiment : figures::experiments()) {
    names.emplace_back(experiment.id);
    if (id == "all" || id == experiment.id) list.push_back(&experiment);
  }
  if (list.empty()) {
    const std::string meant = scenario::nearest(id, names);
    throw UsageError(
        fmt::format("{}: unknown experiment; expected one of {}; for example fomoe reproduce headline{}", id,
                    scenario::joined(names), meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
  return list;
}

/// Refuses a setting that no figure has used.
void check_used(const std::set<std::string>& unused, const std::set<std::string>& names) {
  if (unused.empty()) return;
  const std::vector<std::string> all(names.begin(), names.end());
  const std::string meant = scenario::nearest(*unused.begin(), all);
  throw UsageError(fmt::format("--set {0}: got \"{0}\"; expected an assumption of the figure: {1}{2}",
                               *unused.begin(),
                               all.empty() ? "it has none that can be changed" : scenario::joined(all),
                               meant.empty() ? "" : "; did you mean " + meant + "?"));
}

std::string answer(const figures::Experiment& experiment, const figures::Figure& figure,
                   const figures::Assumptions& assumptions) {
  std::string text = fmt::format("{}: {}\n", experiment.id, experiment.sentence);
  text += figure.text;
  if (figure.text.empty() && !figure.findings.empty()) text += "findings: " + figure.findings.dump(2) + '\n';
  std::string set;
  for (const std::string& name : assumptions.names())
    set += fmt::format("{}{} = {}", set.empty() ? "" : ", ", name, assumptions.stated()[name].dump());
  if (!set.empty()) text += "assumptions that --set changes: " + set + '\n';
  for (const std::string& note : figure.notes) text += "note: " + note + '\n';
  return text;
}

struct Made {
  const figures::Experiment* experiment;
  figures::Figure figure;
  figures::Assumptions assumptions;
};

/// What all figures together say of the paper's claims.
void write_claims(const std::vector<Made>& all, const std::string& folder) {
  std::vector<figures::Figure> made;
  std::vector<std::string_view> ids;
  for (const Made& one : all) {
    made.push_back(one.figure);
    ids.push_back(one.experiment->id);
  }
  const figures::Figure table = figures::claims_table(made, ids);
  scenario::write_answer("\n" + figures::claims_text(table));
  if (folder.empty()) return;
  const std::string path = (std::filesystem::path(folder) / "claims.csv").string();
  claim_output("--output", path);
  write_file(path, figures::csv_text(table));
  message("wrote " + path);
}

}  // namespace

void run_reproduce(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output", po::value<std::string>()->default_value("")->value_name("FOLDER"),
                        "folder for ID.csv, ID.json and a page, ID.md; it is created if it does not exist "
                        "(default: no files are "
                        "written)");
  const Help help = {
      "reproduce",
      "[ID|all] [options]",
      "Computes a figure or table of the FoMoE paper again and states its assumptions, or prints "
      "published runs beside their predictions (runs). "
      "Without an ID it lists the figures and tables; all ends with a table of the paper's claims, "
      "claims.csv.",
      {"fomoe reproduce headline", "fomoe reproduce",
       "fomoe reproduce fig-time-scaling --set bandwidth_gbit_per_s=1 --set mfu=0.5"}};
  if (arguments.empty()) {
    scenario::write_answer(list_text());
    return;
  }
  options.add_options()("set", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
                        "another value of an assumption of the figure, such as mfu=0.5 or "
                        "bandwidth_gbit_per_s=1,40");
  const auto values = parse(arguments, help, options, "id");
  if (!values) return;
  const std::string folder = (*values)["output"].as<std::string>();
  const auto list = chosen((*values)["id"].as<std::vector<std::string>>().front());
  if (folder == "-")  // with other commands this is standard output
    throw UsageError(
        "--output: got -; expected a folder, because each figure has three files; for example --output "
        "results");
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!std::filesystem::is_directory(folder)) {
      throw UsageError(fmt::format(
          "--output: got \"{}\"; expected a folder that can be created; for example --output results",
          folder));
    }
  }
  const auto settings =
      values->count("set") ? (*values)["set"].as<std::vector<std::string>>() : std::vector<std::string>();
  std::vector<Made> all;
  std::set<std::string> unused, names;
  for (const figures::Experiment* experiment : list) {
    figures::Assumptions assumptions(settings);
    figures::Figure figure = experiment->make(assumptions);
    for (const std::string& name : assumptions.names()) names.insert(name);
    all.push_back({experiment, std::move(figure), std::move(assumptions)});
  }
  for (const std::string& name : all.front().assumptions.unused())
    if (!names.contains(name)) unused.insert(name);
  check_used(unused, names);
  for (const auto& [experiment, figure, assumptions] : all) {
    scenario::write_answer(fmt::format("{}{}", experiment == list.front() ? "" : "\n",
                                       answer(*experiment, figure, assumptions)));
    if (folder.empty()) continue;
    const std::string base = (std::filesystem::path(folder) / experiment->id).string();
    for (const char* extension : {".csv", ".json", ".md"}) claim_output("--output", base + extension);
    write_file(base + ".csv", figures::csv_text(figure));
    write_file(base + ".json", figures::json_text(*experiment, figure, assumptions.stated()));
    write_file(base + ".md", figures::page_text(*experiment, figure, assumptions.stated()));
    message(fmt::format("wrote {}.csv, .json and .md", base));
  }
  if (list.size() > 1) write_claims(all, folder);
}

}  // namespace fomoe::commands
