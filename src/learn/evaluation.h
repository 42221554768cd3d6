#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/minibatch_reader.h"
#include "data/parser.h"
#include "io/file_store.h"
#include "learn/data_selection.h"
#include "learn/model_tables.h"
#include "learn/read_meter.h"
#include "learn/shared_settings.h"
#include "pscloud/worker.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// What a config says about evaluating a model, checked and in our own words.
struct EvaluationSettings {
  std::vector<std::string> model_files;  // patterns
  std::vector<std::string> files;        // patterns
  ExampleFormat format = ExampleFormat::kLibsvm;
  DataSelection selection;
  bool strict = false;  // a bad line ends the run; else it is counted and left out
};

// kInvalid names the field that is wrong, missing, or asks for what there is not.
Result<EvaluationSettings> evaluation_settings(const PS::LM::Config& config);

// How a model does on the examples of parts of files. All workers of the job do the same, under a name of its own, and
// share the parts; each is told all of it. kInvalid if there is no example at all. `meter` measures how far it is.
struct Scored {
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
  double auc = 0.5;
  double accuracy = 0;
  double logloss = 0;
};
Result<Scored> score_parts(Worker& worker, const ModelTables& model, FileStore& store,
                           std::span<const std::string> parts, ExampleFormat format, bool strict,
                           const std::string& name, const CachePlace& cache = {}, ReadMeter* meter = nullptr);

// The parts of the validation data; none if the settings name no files. All workers of the job do the same.
Result<std::vector<std::string>> validation_parts(Worker& worker, FileStore& store, const ValidationSettings& settings);

struct Evaluation {
  uint64_t model_files = 0;
  uint64_t weights = 0;
  uint64_t embeddings = 0;
  uint64_t data_files = 0;
  Scored scored;
};

// How well a model does on examples. All workers of the job do the same and share the files; each is told all of it.
// While they score, one of them calls `show` now and then.
Result<Evaluation> evaluate(Worker& worker, FileStore& store, const EvaluationSettings& settings,
                            const ShowReading& show = {});

}  // namespace pscloud
