#pragma once

#include <string>
#include <string_view>

#include "io/file_store.h"
#include "pscloud/error.h"

namespace google::protobuf {
class Message;
}

namespace pscloud {

// Fills `config` from protobuf's text format. kInvalid with place and reason, "ctr.conf:31:9: ...", and with the name
// that was probably meant if there is no such field or value; `name` is the text's in messages.
Result<> parse_config(std::string_view text, std::string_view name, google::protobuf::Message& config);

// Where such a text says a field, as "async_sgd.minibatch" or "push_filter[1]": "31:9". If it does not, where it says
// what that would be within; else nothing. `config` tells which fields there are.
std::string config_place(std::string_view text, std::string_view field, const google::protobuf::Message& config);

// Sets one field, as "async_sgd.minibatch=5000" says; a repeated one has this value alone afterwards. An extension
// needs neither its package nor brackets, as in a text it does.
Result<> set_config_field(std::string_view assignment, google::protobuf::Message& config);

// What parse_config() reads.
std::string config_text(const google::protobuf::Message& config);

// In words, field by field; empty if there is none. What is not set is equal to its default.
std::string config_differences(const google::protobuf::Message& before, const google::protobuf::Message& now);
// Adds what another text says. kInvalid if both say the same thing: to say it otherwise there is set_config_field().
Result<> append_config(std::string_view text, std::string_view name, google::protobuf::Message& config);

// A config's text, decompressed if need be.
Result<std::string> read_config_text(FileStore& store, const std::string& uri);

// All of it from a file.
Result<> read_config(FileStore& store, const std::string& uri, google::protobuf::Message& config);

}  // namespace pscloud
