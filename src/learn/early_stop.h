#pragma once

#include <cstdint>
#include <limits>

namespace pscloud {

// When to end a training that gets no better on the validation data.
struct EarlyStopSettings {
  uint32_t patience = 0;    // passes without gain that are enough; 0: it goes on to the last
  double min_decrease = 0;  // of the logloss, as a share of it, that is a gain
};

// What is remembered of the passes so far.
struct EarlyStop {
  double best = std::numeric_limits<double>::infinity();  // logloss
  uint32_t worse = 0;                                     // passes since

  // After a pass: whether it is enough.
  bool is_enough(double logloss, const EarlyStopSettings& settings) {
    const bool gain = logloss < best * (1 - settings.min_decrease);
    worse = gain ? 0 : worse + 1;
    if (gain) best = logloss;
    return settings.patience > 0 && worse >= settings.patience;
  }
  bool operator==(const EarlyStop&) const = default;
};

}  // namespace pscloud
