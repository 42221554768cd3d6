#pragma once

#include <string>

#include "base/json.h"
#include "cli/bench/bench_adder_job.h"

namespace pscloud {

// What an adder came to, in the words that reports use.
std::string adder_json(const AdderFlags& flags, const AdderOutcome& outcome);
std::string adder_text(const AdderFlags& flags, const AdderOutcome& outcome);

// The fields of adder_json(), for a larger object: what was asked for, and what came of it.
void write_adder_question(JsonWriter& json, const AdderFlags& flags);
void write_adder_answer(JsonWriter& json, const AdderFlags& flags, const AdderOutcome& outcome);

// Both directions, of all workers that were measured.
double adder_gb_per_s(const AdderFlags& flags, const AdderOutcome& outcome);

}  // namespace pscloud
