// Loads pages in Chromium and says what they have become.
#pragma once
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

inline void must_run(const Folder& folder, const std::string& command) {
  const Ran ran = run_in(folder.path(), command);
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
}

struct Shown {
  std::string dom;       // the document after its scripts have run
  std::string messages;  // the lines that the scripts wrote to the console
};

/// Runs Chromium, which gets a profile of its own, with a file of the folder.
inline Ran in_chromium(const Folder& folder, const std::string& options, const std::string& name) {
  const Ran ran =
      run_in(folder.path(), "'" FOMOE_CHROMIUM "' --headless --no-sandbox --disable-gpu --user-data-dir='" +
                                (folder / "profile") + "' " + options + " 'file://" + (folder / name) + "'");
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return ran;
}

/// Loads a file of the folder and returns the page.
inline Shown shown(const Folder& folder, const std::string& name) {
  const Ran ran = in_chromium(folder, "--enable-logging=stderr --virtual-time-budget=5000 --dump-dom", name);
  Shown page = {ran.out, ""};
  std::istringstream lines(ran.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) page.messages += line + '\n';
  }
  return page;
}

/// The PDF of a file of the folder on the usual paper.
inline std::string printed(const Folder& folder, const std::string& name) {
  in_chromium(folder, "--virtual-time-budget=5000 --print-to-pdf='" + (folder / "printed.pdf") + "'", name);
  return read_all(folder / "printed.pdf");
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace fomoe::tests
