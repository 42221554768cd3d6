#pragma once

#include <cstdint>
#include <string>

#include "learn/online_trainer.h"

namespace pscloud {

// The lines of progress of online training.
std::string online_table_header();
std::string online_table_line(const OnlineProgress& progress);

// For people who look: rate, share done and time left.
std::string live_line(const OnlineProgress& progress);

// Progress between a worker process and the one that started it.
std::string encode_progress(const OnlineProgress& progress);
Result<OnlineProgress> decode_progress(const std::string& line);

}  // namespace pscloud
