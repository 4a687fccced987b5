#include "experiments/explore/page.hpp"

#include "experiments/explore/page_template.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/page_template.hpp"

namespace fomoe::explore {

std::string explore_page(const Json& start, const Json& simulated, const report::ChartLibrary& library) {
  const std::string name = start["name"].get<std::string>();
  const bool served = !start.contains("grid");
  return report::filled(kPageHtml,
                        {{"title", report::escaped(name.empty() ? start["path"].get<std::string>() : name)},
                         {"description", report::escaped(start["description"].get<std::string>())},
                         // Only a page with a server may connect to it.
                         {"connect", served ? "connect-src 'self'; " : ""},
                         {"report_style", report::kPageCss},
                         {"style", kPageCss},
                         {"start", report::embedded(start)},
                         {"simulated", report::embedded(simulated)},
                         {"licence", report::chart_licence(library)},
                         {"chart_library", library.text},
                         {"report_charts", report::kChartsJs},
                         {"formats", kFormatsJs},
                         {"charts", kChartsJs},
                         {"answers", kAnswersJs},
                         {"views", kViewsJs},
                         {"page", kPageJs}});
}

}  // namespace fomoe::explore
