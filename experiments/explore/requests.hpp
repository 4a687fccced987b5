// What the server answers: a pure function of the request, apart from the scenario's files.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "experiments/explore/simulation.hpp"

namespace fomoe::explore {

struct Request {
  std::string method;  // "GET"
  std::string target;  // "/TOKEN/formula"
  std::string host;    // the header; empty if it is missing
  std::string origin;
  std::string body;
};

struct Reply {
  int status = 200;
  std::string type;  // "application/json"
  std::string body;
  std::string download = {};  // the name under which a browser saves it; empty: it is shown
  std::string location = {};  // where a redirection leads
};

/// An answer that takes longer is `work` for a child process, so that other requests need not wait. If `slot`
/// is not empty, new work ends older work of the same slot, whose answer nobody waits for.
/// Work that takes longer than `limit` is ended.
struct Answer {
  Reply now;
  std::function<Reply()> work = {};
  std::string slot = {};
  std::chrono::seconds limit = std::chrono::minutes(10);
};

/// Everything that the answers depend on.
struct Service {
  Question question;
  std::string token;      // the first part of every path
  std::string authority;  // "127.0.0.1:8000": what the header Host must be; localhost stands for 127.0.0.1
  std::string page;
  Simulate simulate = nullptr;
  report::ChartLibrary library;
};

/// GET /TOKEN/ is the page. POST /TOKEN/NAME takes {"settings": {KEY: VALUE}, …} and answers JSON:
///   formula   formula_answer()       simulate   simulation_answer()    toml     {toml, name}
///   compare   comparison_answer()    report     the page of `fomoe report`, for {"results": [{name,
///   settings}]}
/// All of them are computed by child processes, since there are scenarios whose formula takes for ever.
/// Mistakes in settings give status 422 and {"mistakes": [{key, text}]}. Requests without the token or with
/// a foreign Host or Origin get 403, and nothing else is told about them.
Answer answer_to(const Service& service, const Request& request);

/// An address that leads to the page once, for the command line that opens the browser: other users of the
/// machine can see the arguments of a process, but what they see is then spent.
class Ticket {
 public:
  explicit Ticket(std::string secret) : secret_(std::move(secret)) {}
  [[nodiscard]] std::string address(const Service& service) const;
  /// The redirection to the page if the request is for this address and the first one; otherwise nothing.
  std::optional<Reply> redeemed(const Service& service, const Request& request);

 private:
  std::string secret_;  // empty: spent
};

}  // namespace fomoe::explore
