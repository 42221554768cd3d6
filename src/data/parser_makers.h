#pragma once

#include <memory>

#include "data/parser.h"

namespace pscloud {

// A parser for each format. `ignore_groups`: features are in no group; where groups are written they are still checked.
std::unique_ptr<Parser> make_adfea_parser(bool ignore_groups);
std::unique_ptr<Parser> make_criteo_parser(bool ignore_groups);
std::unique_ptr<Parser> make_grouped_parser(ExampleFormat format,
                                            bool ignore_groups);  // SPARSE, SPARSE_BINARY and DENSE
std::unique_ptr<Parser> make_libsvm_parser();
std::unique_ptr<Parser> make_proto_parser(bool ignore_groups);
std::unique_ptr<Parser> make_terafea_parser(bool ignore_groups);
std::unique_ptr<Parser> make_vw_parser();

// Groups of features have numbers below this.
inline constexpr uint64_t kGroupsMax = 4096;

}  // namespace pscloud
