#include "console/api_parts.h"
#include "launch/run_report.h"

namespace pscloud {

Result<std::string> begin_stop(const ApiOptions& options, RunFolder& folder) {
  if (folder.is_watched()) {
    // Its launcher does the rest, and takes as long as it must: what comes back is that it has not ended yet.
    const auto stopped = stop_run(folder, false, 0);
    if (!stopped && stopped.error().code != Code::kTimeout) return stopped.error();
  } else if (!folder.is_settled()) {
    TRY(options.clean(folder.name()));
  }
  const RunReport report = TRY(look_at_run(folder));
  return std::string(report.watched && !report.state.ended() ? "stopping" : report.word());
}

}  // namespace pscloud
