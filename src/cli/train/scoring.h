#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/train/config_flags.h"
#include "cli/train/place_flags.h"
#include "io/file_store.h"
#include "learn/evaluation.h"
#include "pscloud/worker.h"

namespace pscloud {

// What the verbs that score examples by a model are told.
struct ScoringFlags {
  ConfigFlags config;
  PlaceFlags place;
  bool join = false;  // a job that others have started
  bool json = false;
};

// `about` is what the config says.
void add_scoring_flags(CLI::App& verb, ScoringFlags& flags, const char* about);

// What is a verb's own.
struct Scoring {
  std::vector<std::string> words;  // the verb, and flags of its own
  // Whether it can do what the config says, before anything starts.
  std::function<Result<>(const EvaluationSettings& settings)> check;
  // One worker's part; all workers do the same. Each ends with all of the result, as a line of text, for it may be in
  // another process.
  std::function<Result<std::string>(Worker& worker, FileStore& files, const EvaluationSettings& settings,
                                    const ShowReading& show)>
      work;
  // Tells a person, or a program, the result.
  std::function<Result<>(const std::string& result)> print;
};

// In this process, in others, or on a cluster, as the flags say, with a line that tells how far it is. The exit code.
int run_scoring(ScoringFlags flags, const Scoring& scoring);

// The result between processes: numbers with a blank between them.
template <class... Numbers>
Result<> read_numbers(const std::string& text, Numbers&... numbers) {
  std::istringstream words(text);
  (words >> ... >> numbers);
  if (!words) return corrupt("a worker said \"{}\"", text);
  return {};
}

}  // namespace pscloud
