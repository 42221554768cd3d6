#pragma once

#include <string>

#include "data/parser.h"
#include "learn/data_selection.h"
#include "pscloud/error.h"

namespace PS::LM {
class DataConfig;
}

namespace pscloud {

// What a config says about data. `field` is its name in messages.
Result<ExampleFormat> example_format(const PS::LM::DataConfig& data, const char* field);

// "LIBSVM", as the schema has it; kInvalid lists the names there are.
Result<ExampleFormat> example_format_named(const std::string& name);

// Which of the examples it wants. kInvalid for what there is not: a field that is read and ignored would do another
// thing than was asked for.
Result<DataSelection> data_selection(const PS::LM::DataConfig& data, const char* field);

// What names of files begin with that keep what was read.
Result<std::string> cache_prefix_of(const PS::LM::DataConfig& cache, const char* field);

}  // namespace pscloud
