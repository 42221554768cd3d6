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
Result<TextFormat> text_format(const PS::LM::DataConfig& data, const char* field);

// "LIBSVM", as the schema has it; kInvalid lists the names there are.
Result<TextFormat> text_format_named(const std::string& name);

// Which of the examples it wants. kInvalid for what there is not: a field that is read and ignored would do another
// thing than was asked for.
Result<DataSelection> data_selection(const PS::LM::DataConfig& data, const char* field);

}  // namespace pscloud
