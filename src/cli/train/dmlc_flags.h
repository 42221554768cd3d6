#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pscloud/environment.h"
#include "pscloud/error.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// The old door: command lines of dmlc's parameter server, `-app_file x.conf -num_servers 2 -num_workers 4`, in ours.

// A node as -my_node and -scheduler write it: role:SERVER,hostname:'10.0.0.2',port:8001,id:'S1'
struct DmlcNode {
  std::string role;
  std::string hostname = "127.0.0.1";
  std::optional<uint16_t> port;

  bool operator==(const DmlcNode&) const = default;
};
Result<DmlcNode> parse_dmlc_node(const std::string& text);

struct DmlcFlags {
  std::string app_file;
  std::string app_conf;
  int num_servers = 0;
  int num_workers = 0;
  int num_threads = 0;  // not given
  int bind_to = 0;
  int line_limit = 0;
  std::optional<DmlcNode> my_node;
  std::optional<DmlcNode> scheduler;
  std::vector<std::string> ignored;  // flags that have no effect here, "-key_start"
};

// The first word is one of dmlc's flags, whatever the dashes.
bool begins_as_dmlc(std::span<const std::string> words);
// `-name value`, `-name=value`, `--name=value`, and `-name` or `-noname` where the value is true or false.
Result<DmlcFlags> parse_dmlc_flags(std::span<const std::string> words);

// What pscloud is to be told instead: words behind its name, and what its environment must say.
struct OurCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> ignored;
};
// `config` is what the flags say; a scheduler or server may have none, a null.
Result<OurCommand> translate(const DmlcFlags& flags, const PS::LM::Config* config, const Environment& environment);

// All of that, as far as the words to go on with: says on stderr what they are, and sets the environment.
Result<std::vector<std::string>> through_the_old_door(std::span<const std::string> words);

}  // namespace pscloud
