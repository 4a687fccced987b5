// Rounds of workers that train at their own pace and exchange with a server at the first site.
//
// A cycle of a worker is K/F local steps, the upload of one of the F fragments of the model, the server's
// outer step on it, and the download of the updated fragment. The fragments take turns. A worker goes on to
// its next cycle at once. It waits only if the fragment that this cycle will send has not come back since it
// was sent last, F cycles before; with one fragment it waits for each download. It sends one fragment after
// another, and receives so.
//
// own_pace.hpp has the duration of each worker's cycle and of the run. A round of the plan has K steps of the
// fastest worker; a slow one has fewer cycles in some rounds, or none. Flows have the rates that the others
// leave on average: how transfers of equal sites happen to meet would otherwise decide how long the run
// takes.
#pragma once
#include "costmodel/plan/plan.hpp"

namespace fomoe::costmodel {

/// The plan of a method that trains so. Fragments are equal parts of the model.
Plan plan_of_paces(const Scenario& scenario);

}  // namespace fomoe::costmodel
