#include "experiments/explore/requests.hpp"

#include <filesystem>

#include "experiments/explore/formula.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::explore {

namespace {

constexpr auto kFormulaLimit = std::chrono::seconds(10);
constexpr std::size_t kMostResults = 5;  // four pins and the present settings

Reply json_reply(const Json& json, int status = 200) {
  return {status, "application/json", json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

/// Takes the same time wherever the two texts differ.
bool same_secret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

/// 127.0.0.1:8000 may also be called localhost:8000.
bool own_authority(const Service& service, const std::string& authority) {
  const std::string port = service.authority.substr(service.authority.rfind(':'));
  return authority == service.authority || authority == "localhost" + port;
}

bool allowed(const Service& service, const Request& request) {
  if (!own_authority(service, request.host)) return false;
  return request.origin.empty() ||
         (request.origin.starts_with("http://") && own_authority(service, request.origin.substr(7)));
}

/// Calls `make`; the user's mistakes become mistakes of fields.
Reply guarded(const std::vector<std::string>& overrides, const std::function<Reply()>& make) {
  try {
    return make();
  } catch (const FileError& error) {
    return json_reply({{"mistakes", mistakes_of(error.what(), overrides)}}, 422);
  } catch (const InputError& error) {
    return json_reply({{"mistakes", Json::array({{{"key", error.key()}, {"text", error.what()}}})}}, 422);
  } catch (const std::exception& error) {
    return json_reply({{"mistakes", Json::array({{{"key", ""}, {"text", error.what()}}})}}, 500);
  }
}

Answer post(const Service& service, const std::string& name, const std::string& body) {
  const Json asked = Json::parse(body, nullptr, false);
  if (!asked.is_object()) throw BadRequest("the body: expected a JSON object");
  const Question& question = service.question;
  if (name == "report") {
    std::vector<std::pair<std::string, std::vector<std::string>>> results;
    if (!asked.contains("results") || !asked["results"].is_array() || asked["results"].empty() ||
        asked["results"].size() > kMostResults)
      throw BadRequest("results: expected an array of one to five objects");
    for (const Json& one : asked["results"]) {
      if (!one.is_object() || !one.contains("name") || !one["name"].is_string() || !one.contains("settings"))
        throw BadRequest("results: expected objects with name and settings");
      results.emplace_back(one["name"].get<std::string>(), overrides_of(question, one["settings"]));
    }
    return {{}, [&service, results] {
              return guarded(results.front().second, [&] {
                return Reply{200, "text/html; charset=utf-8",
                             report_page(service.question, results, service.simulate, service.library),
                             "report.html"};
              });
            }};
  }
  const std::vector<std::string> overrides =
      overrides_of(question, asked.contains("settings") ? asked["settings"] : Json());
  const std::string page =
      asked.contains("page") && asked["page"].is_string() ? asked["page"].get<std::string>() : "";
  const auto reply = [&](auto make) {
    return [overrides, make] { return guarded(overrides, [&] { return json_reply(make(overrides)); }); };
  };
  if (name == "formula")
    return {{},
            reply([&question](const auto& all) { return formula_answer(question, all); }),
            "formula " + page,
            kFormulaLimit};
  if (name == "toml") {
    return {{},
            reply([&question](const auto& all) {
              read(question, all);  // a file that no command would read is not offered
              return Json{{"toml", toml_of(question, all)},
                          {"name", std::filesystem::path(question.path).filename().string()}};
            }),
            {},
            kFormulaLimit};
  }
  if (name == "compare")
    return {{},
            reply([&question](const auto& all) { return comparison_answer(question, all); }),
            "compare " + page};
  if (name == "simulate")
    return {{},
            reply([&question](const auto& all) { return simulation_answer(question, all); }),
            "simulate " + page};
  return {{404, "text/plain", "no such address\n"}, {}, {}};
}

}  // namespace

Answer answer_to(const Service& service, const Request& request) {
  const Reply refused = {403, "text/plain", "refused: open the address that fomoe explore printed\n"};
  const std::size_t end = request.target.find('/', 1);
  const bool has_token = end != std::string::npos && request.target.front() == '/' &&
                         same_secret(request.target.substr(1, end - 1), service.token);
  if (!has_token || !allowed(service, request)) return {refused, {}, {}};
  const std::string name = request.target.substr(end + 1);
  if (request.method == "GET") {
    if (name.empty()) return {{200, "text/html; charset=utf-8", service.page}, {}, {}};
    return {{404, "text/plain", "no such address\n"}, {}, {}};
  }
  if (request.method != "POST") return {{405, "text/plain", "expected GET or POST\n"}, {}, {}};
  try {
    return post(service, name, request.body);
  } catch (const BadRequest& error) {
    return {json_reply({{"mistakes", Json::array({{{"key", ""}, {"text", error.what()}}})}}, 400), {}, {}};
  }
}

std::string Ticket::address(const Service& service) const {
  return "http://" + service.authority + "/open/" + secret_;
}

std::optional<Reply> Ticket::redeemed(const Service& service, const Request& request) {
  if (secret_.empty() || request.method != "GET" || !allowed(service, request) ||
      !same_secret(request.target, "/open/" + secret_))
    return std::nullopt;
  secret_.clear();
  Reply reply = {303, "text/plain", ""};
  reply.location = "/" + service.token + "/";
  return reply;
}

}  // namespace fomoe::explore
