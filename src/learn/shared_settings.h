#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/parser.h"
#include "learn/data_selection.h"
#include "learn/early_stop.h"
#include "learn/loss.h"
#include "learn/model_format.h"
#include "learn/tail_filter.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}

namespace PS::LM {
class Config;
class FilterConfig;
}  // namespace PS::LM

namespace pscloud {

// What configs of online and of batch training say alike. kInvalid names the field.

// The price of a weight is lambda1 * |w| + lambda2 / 2 * w^2.
struct Penalty {
  double lambda1 = 0;
  double lambda2 = 0;
};
Result<Penalty> penalty_of(const PS::LM::Config& config);

Result<Loss> loss_of(const PS::LM::Config& config);
Result<std::vector<FilterSpec>> filters_of(const google::protobuf::RepeatedPtrField<PS::LM::FilterConfig>& filters,
                                           const char* field);

// Where the model goes; nothing: it is not written.
Result<std::optional<ModelOutput>> model_output_of(const PS::LM::Config& config);

// What the model is tried on while it is trained, and when that is reason to stop.
struct ValidationSettings {
  std::vector<std::string> files;  // patterns; none: it is not tried
  ExampleFormat format = ExampleFormat::kLibsvm;
  DataSelection selection;
  EarlyStopSettings early_stop;
};
Result<ValidationSettings> validation_of(const PS::LM::Config& config);

// A field `tail_feature_freq`, and the number of hashes of the sketch that counts for it.
Result<TailSettings> tail_of(int32_t frequency, int32_t hashes, const char* field);

// A field that says megabytes, of 10^6 bytes.
Result<uint64_t> megabytes_of(int32_t value, const char* field);

// The name of one value of a field that has `count` of them: "penalty.lambda[1]".
std::string one_of(const char* field, int index, int count);

Result<uint32_t> at_least(int32_t value, int32_t least, const char* field);

}  // namespace pscloud
