#include "launch/swarm/container_figures.h"

#include <algorithm>

namespace pscloud {

Figures ContainerFigures::take(const JsonValue& stats, Time now) {
  Figures figures;
  const double cpu_s = stats["cpu_stats"]["cpu_usage"]["total_usage"].number(-1) / 1e9;
  const double elapsed_s = std::chrono::duration<double>(now - at_).count();
  if (cpu_s_ >= 0 && cpu_s >= cpu_s_ && elapsed_s > 0) {
    figures.emplace_back("cpu_percent", 100 * (cpu_s - cpu_s_) / elapsed_s);
  }
  cpu_s_ = cpu_s;
  at_ = now;
  const JsonValue& memory = stats["memory_stats"];
  if (const double usage = memory["usage"].number(); usage > 0) {
    // The second name is that of control groups of version 1.
    const double cached =
        std::max(memory["stats"]["inactive_file"].number(), memory["stats"]["total_inactive_file"].number());
    figures.emplace_back("memory_bytes", std::max(usage - cached, 0.0));
  }
  if (!stats["networks"].members().empty()) {
    double sent = 0;
    double received = 0;
    for (const auto& [name, network] : stats["networks"].members()) {
      sent += network["tx_bytes"].number();
      received += network["rx_bytes"].number();
    }
    figures.emplace_back("sent_bytes", sent);
    figures.emplace_back("received_bytes", received);
  }
  return figures;
}

}  // namespace pscloud
