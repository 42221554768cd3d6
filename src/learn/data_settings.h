#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/parser.h"
#include "io/file_store.h"
#include "pscloud/error.h"

namespace PS::LM {
class DataConfig;
}

namespace pscloud {

// What a config says about data. `field` is its name in messages.
Result<TextFormat> text_format(const PS::LM::DataConfig& data, const char* field);

// "LIBSVM", as the schema has it; kInvalid lists the names there are.
Result<TextFormat> text_format_named(const std::string& name);

// kInvalid for what is not there yet: a field that is read and ignored would do another thing than was asked for.
Result<> check_data(const PS::LM::DataConfig& data, const char* field);

// Parts of files as items of work: small enough that the last ones end at about the same time, large enough that to ask
// for one costs nothing.
Result<std::vector<std::string>> cut_into_items(FileStore& store, std::span<const FileInfo> files);

}  // namespace pscloud
