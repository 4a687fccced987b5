#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/explore/controls.hpp"
#include "experiments/explore/grid.hpp"
#include "experiments/explore/page.hpp"
#include "experiments/explore/server.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {

namespace po = boost::program_options;

namespace {

/// 128 random bits, which nobody guesses.
std::string new_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw std::runtime_error("the system gives no random numbers");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

std::uint16_t read_port(const std::string& text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port)
    throw UsageError(fmt::format(
        "--port: got \"{}\"; expected a whole number from 0 to 65535; for example --port 8000", text));
  return *port;
}

/// Opens the address in the user's browser, if the machine has one.
void open_browser(const std::string& address) {
  const pid_t pid = fork();
  if (pid == 0) {
    // A second fork: the browser outlives this process, which must not wait for it.
    if (fork() != 0) _exit(0);
    const int nothing = open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) dup2(nothing, descriptor);
    close_range(3, ~0U, 0);
    setsid();
    execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
    _exit(1);
  }
  if (pid > 0) waitpid(pid, nullptr, 0);
}

void serve(explore::Question question, std::uint16_t port, bool browser, report::ChartLibrary library) {
  explore::Service service;
  service.page = explore::explore_page(explore::controls_of(question), nullptr, library);
  service.question = std::move(question);
  service.library = std::move(library);
  service.token = new_token();
  service.simulate = run_simulate;
  explore::Server server(port);
  service.authority = fmt::format("127.0.0.1:{}", server.port());
  const std::string address = fmt::format("http://{}/{}/", service.authority, service.token);
  scenario::write_answer(address + "\n");
  std::fflush(stdout);
  message("Open this address in a browser on this machine. Ctrl-C ends the page.");
  explore::Ticket ticket(new_token());
  if (browser) open_browser(ticket.address(service));
  server.run([&](const explore::Request& request) {
    if (auto reply = ticket.redeemed(service, request)) return explore::Answer{*std::move(reply), {}, {}};
    return explore::answer_to(service, request);
  });
}

}  // namespace

void run_explore(const Arguments& arguments) {
  po::options_description options("Options");
  add_scenario_options(options);
  options.add_options()("port", po::value<std::string>()->default_value("0")->value_name("N"),
                        "port on 127.0.0.1 (default: any free port)")(
      "no-browser", "print the address and open no browser")(
      "export", po::value<std::string>()->default_value("")->value_name("PAGE.html"),
      "write a page that needs neither fomoe nor a network, with the closed form on a grid of settings, and "
      "exit (default: serve the page)")(
      "chart-library", po::value<std::string>()->default_value("")->value_name("FILE.js"),
      "file with Chart.js 3 or 4, which is copied into the page (default: that of the wheel, or of Debian's "
      "libjs-chart.js)");
  const Help help = {
      "explore",
      "SCENARIO.toml [options]",
      "Opens a page to plan with: sliders for bandwidth, latency, K, O_e, method, number format, step time, "
      "sites, GPUs and tokens. At "
      "each move the\npage shows the closed form at once and the simulation shortly after, with charts and "
      "up to four pinned settings.\nThe page copies the settings as TOML or as a command and saves a report. "
      "It is reachable only from this machine, at\nthe printed address. Changes of the scenario file are "
      "read at the next move.",
      {"fomoe explore experiments/scenarios/four-regions.toml",
       "fomoe explore experiments/scenarios/two-sites.toml --port 8000 --no-browser",
       "fomoe explore experiments/scenarios/four-regions.toml --export page.html"}};
  const auto values = parse(arguments, help, options, "scenario");
  if (!values) return;
  const explore::Question question = {(*values)["scenario"].as<std::vector<std::string>>().front(),
                                      overrides_of(*values)};
  if (question.path == "-")
    throw UsageError(
        "scenario: got \"-\"; expected a file, which can be read again at each move; for example fomoe "
        "explore experiments/scenarios/two-sites.toml");
  const std::uint16_t port = read_port((*values)["port"].as<std::string>());
  const std::string path = (*values)["export"].as<std::string>();
  const Output output("--export", path, {".html"});
  report::ChartLibrary library = report::read_chart_library((*values)["chart-library"].as<std::string>());
  if (path.empty()) return serve(question, port, values->count("no-browser") == 0, std::move(library));
  const explore::Json simulated = explore::simulation_answer(question, question.overrides);
  output.write(explore::explore_page(explore::grid_of(question), simulated, library));
}

}  // namespace fomoe::commands
