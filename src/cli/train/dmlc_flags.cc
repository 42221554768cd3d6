#include "cli/train/dmlc_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/train/config_flags.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

constexpr uint16_t kDmlcPort = 8000;

enum class DmlcUse { kUsed, kIgnored, kRefused };  // refused: other than its default

struct DmlcFlag {
  const char* name;
  DmlcUse use;
  bool is_switch = false;
  const char* why = "";  // it is refused
};

constexpr DmlcFlag kDmlcFlags[] = {
    {"app_file", DmlcUse::kUsed},
    {"app_conf", DmlcUse::kUsed},
    {"my_node", DmlcUse::kUsed},
    {"scheduler", DmlcUse::kUsed},
    {"num_servers", DmlcUse::kUsed},
    {"num_workers", DmlcUse::kUsed},
    {"num_threads", DmlcUse::kUsed},
    {"bind_to", DmlcUse::kUsed},
    {"line_limit", DmlcUse::kUsed},
    {"hash_kernel", DmlcUse::kRefused, false, "keys are taken as they are"},
    {"shuffle_fea_id", DmlcUse::kRefused, true, "keys of TERAFEA are taken as they are"},
    // Every 64-bit value is a key, each node says itself where it listens, and nodes of one machine find the best way.
    {"key_start", DmlcUse::kIgnored},
    {"key_end", DmlcUse::kIgnored},
    {"interface", DmlcUse::kIgnored},
    {"local", DmlcUse::kIgnored, true},
    // These had no effect there either.
    {"num_replicas", DmlcUse::kIgnored},
    {"report_interval", DmlcUse::kIgnored},
    {"input", DmlcUse::kIgnored},
    {"output", DmlcUse::kIgnored},
    {"format", DmlcUse::kIgnored},
    // Of glog.
    {"logtostderr", DmlcUse::kIgnored, true},
    {"alsologtostderr", DmlcUse::kIgnored, true},
    {"colorlogtostderr", DmlcUse::kIgnored, true},
    {"log_prefix", DmlcUse::kIgnored, true},
    {"log_dir", DmlcUse::kIgnored},
    {"stderrthreshold", DmlcUse::kIgnored},
    {"minloglevel", DmlcUse::kIgnored},
    {"vmodule", DmlcUse::kIgnored},
    {"v", DmlcUse::kIgnored},
};

const DmlcFlag* find_flag(std::string_view name) {
  const auto* const found = std::ranges::find(kDmlcFlags, name, &DmlcFlag::name);
  return found == std::end(kDmlcFlags) ? nullptr : found;
}

// A word without its dashes, cut at the first '='.
struct FlagWord {
  std::string name;
  std::optional<std::string> value;
};
std::optional<FlagWord> flag_word(const std::string& word) {
  if (!word.starts_with('-')) return std::nullopt;
  const std::string bare = word.substr(word.starts_with("--") ? 2 : 1);
  const size_t equals = bare.find('=');
  if (equals == std::string::npos) return FlagWord{bare, std::nullopt};
  return FlagWord{bare.substr(0, equals), bare.substr(equals + 1)};
}

// A switch may be `-local`, `-nolocal` or `-local=false`.
const DmlcFlag* find_flag(FlagWord& word) {
  const DmlcFlag* flag = find_flag(word.name);
  if (flag != nullptr || !word.name.starts_with("no") || word.value) return flag;
  flag = find_flag(std::string_view(word.name).substr(2));
  if (flag == nullptr || !flag->is_switch) return nullptr;
  word = {flag->name, "false"};
  return flag;
}

Result<int> number_of_flag(const std::string& name, const std::string& text, int most) {
  int number = 0;
  if (!parse_number(text, 0, most, number)) {
    return invalid("-{} is \"{}\": it must be a number from 0 to {}", name, text, most);
  }
  return number;
}

bool is_default(const std::string& value) { return value.empty() || value == "0" || value == "false"; }

Result<> apply_values(const std::map<std::string, std::string>& values, DmlcFlags& flags) {
  for (const auto& [name, value] : values) {
    constexpr int kMany = 1 << 30;
    if (name == "app_file") flags.app_file = value;
    if (name == "app_conf") flags.app_conf = value;
    if (name == "my_node") flags.my_node = TRY(parse_dmlc_node(value).at("-my_node"));
    if (name == "scheduler") flags.scheduler = TRY(parse_dmlc_node(value).at("-scheduler"));
    if (name == "num_servers") flags.num_servers = TRY(number_of_flag(name, value, 256));
    if (name == "num_workers") flags.num_workers = TRY(number_of_flag(name, value, 16000));
    if (name == "num_threads") flags.num_threads = TRY(number_of_flag(name, value, 16000));
    if (name == "bind_to") flags.bind_to = TRY(number_of_flag(name, value, 65535));
    if (name == "line_limit") flags.line_limit = TRY(number_of_flag(name, value, kMany));
  }
  return {};
}

std::string address_of(const DmlcNode& node) {
  return fmt::format("{}:{}", node.hostname, node.port.value_or(kDmlcPort));
}

// As our own names have it; nothing if this is no node of a job.
std::optional<std::string> role_of(const DmlcFlags& flags, const Environment& environment) {
  if (flags.my_node) return flags.my_node->role;
  for (const char* name : {"PSCLOUD_ROLE", "DMLC_ROLE"}) {
    if (auto role = environment(name); role && !role->empty()) return role;
  }
  return std::nullopt;
}

void add_count(const char* flag, int count, std::vector<std::string>& words) {
  if (count > 0) words.insert(words.end(), {flag, std::to_string(count)});
}

Result<OurCommand> translate_node(const DmlcFlags& flags, const std::string& role) {
  OurCommand ours{.words = {"node"}, .environment = {}, .ignored = flags.ignored};
  std::vector<std::string>& words = ours.words;
  if (!flags.my_node) {  // the environment says the rest
    if (role == "scheduler") {
      add_count("--servers", flags.num_servers, words);
      add_count("--workers", flags.num_workers, words);
    }
    return ours;
  }
  const DmlcNode& node = *flags.my_node;
  if (flags.bind_to != 0 && node.port && flags.bind_to != *node.port) {
    return invalid("-bind_to {}, but the others are told port {}: a node listens where it says", flags.bind_to,
                   *node.port);
  }
  DmlcNode here = node;
  if (flags.bind_to != 0) here.port = static_cast<uint16_t>(flags.bind_to);
  words.insert(words.end(), {"--role", role, "--scheduler"});
  if (role == "scheduler") {
    words.push_back(address_of(here));
    add_count("--servers", flags.num_servers, words);
    add_count("--workers", flags.num_workers, words);
  } else {
    words.push_back(address_of(flags.scheduler.value_or(DmlcNode{})));
    words.insert(words.end(), {"--listen", fmt::format("{}:{}", here.hostname, here.port.value_or(0))});
  }
  return ours;
}

std::string quoted_for_shell(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Result<DmlcNode> parse_dmlc_node(const std::string& text) {
  DmlcNode node;
  size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t\n,;", at);
    if (at == std::string::npos) break;
    const size_t colon = text.find(':', at);
    if (colon == std::string::npos) return invalid("\"{}\" is no node: a ':' is missing", text);
    const std::string name = text.substr(at, text.find_first_of(" :", at) - at);
    at = std::min(text.size(), text.find_first_not_of(' ', colon + 1));
    size_t end = 0;
    std::string value;
    if (at < text.size() && (text[at] == '\'' || text[at] == '"')) {
      end = text.find(text[at], at + 1);
      if (end == std::string::npos) return invalid("\"{}\" is no node: a quote is missing", text);
      value = text.substr(at + 1, end - at - 1);
      ++end;
    } else {
      end = std::min(text.size(), text.find_first_of(" \t\n,;", at));
      value = text.substr(at, end - at);
    }
    at = end;
    if (name == "role") {
      const std::map<std::string, std::string> kRoles = {
          {"SCHEDULER", "scheduler"}, {"SERVER", "server"}, {"WORKER", "worker"}};
      const auto role = kRoles.find(value);
      if (role == kRoles.end()) return invalid("no role {}: it must be SCHEDULER, SERVER or WORKER", value);
      node.role = role->second;
    } else if (name == "hostname") {
      node.hostname = value;
    } else if (name == "port") {
      node.port = static_cast<uint16_t>(TRY(number_of_flag("port", value, 65535)));
    } else if (name != "id") {
      return invalid("\"{}\" is no node: it has role, hostname, port and id, not {}", text, name);
    }
  }
  if (node.role.empty()) return invalid("\"{}\" has no role", text);
  return node;
}

bool begins_as_dmlc(std::span<const std::string> words) {
  if (words.empty()) return false;
  auto word = flag_word(words.front());
  return word && find_flag(*word) != nullptr;
}

Result<DmlcFlags> parse_dmlc_flags(std::span<const std::string> words) {
  DmlcFlags flags;
  std::map<std::string, std::string> values;  // the last of each counts
  for (size_t i = 0; i < words.size(); ++i) {
    auto word = flag_word(words[i]);
    if (!word) return invalid("'{}' is one word too many", words[i]);
    const DmlcFlag* const flag = find_flag(*word);
    if (flag == nullptr) {
      std::vector<std::string> known;
      for (const DmlcFlag& one : kDmlcFlags) known.emplace_back(one.name);
      const std::string near = suggest(word->name, known);
      return invalid("unknown flag '-{}'{}", word->name,
                     near.empty() ? "" : fmt::format("; did you mean '-{}'?", near));
    }
    if (!word->value && flag->is_switch) word->value = "true";
    if (!word->value) {
      if (i + 1 == words.size()) return invalid("-{} needs a value", flag->name);
      word->value = words[++i];
    }
    if (flag->use == DmlcUse::kRefused && !is_default(*word->value)) {
      return invalid("-{} is not supported: {}", flag->name, flag->why);
    }
    if (flag->use == DmlcUse::kIgnored) flags.ignored.push_back(fmt::format("-{}", flag->name));
    values[flag->name] = *word->value;
  }
  TRY(apply_values(values, flags));
  return flags;
}

Result<OurCommand> translate(const DmlcFlags& flags, const PS::LM::Config* config, const Environment& environment) {
  const auto role = role_of(flags, environment);
  const bool evaluates = config != nullptr && !config->has_darlin() && !config->has_async_sgd();
  // There the scheduler evaluates alone.
  const bool is_node = role && *role != "worker" && !(evaluates && *role == "scheduler");
  if (is_node) return translate_node(flags, *role);
  if (config == nullptr) {
    if (!role) return invalid("-app_file is missing");
    return invalid("workers read the config themselves: give them -app_file too");
  }
  if (evaluates && !config->has_validation_data()) {
    return invalid("{}: it has neither darlin nor async_sgd nor validation_data: there is nothing to do",
                   flags.app_file.empty() ? "-app_conf" : flags.app_file);
  }
  OurCommand ours{.words = {evaluates ? "evaluate" : "train"}, .environment = {}, .ignored = flags.ignored};
  const ConfigFlags ours_config{.file = flags.app_file.empty() ? "/dev/null" : flags.app_file,
                                .appended = flags.app_conf,
                                .assignments = {},
                                .strict = false};
  std::ranges::copy(words_of(ours_config), std::back_inserter(ours.words));
  if (flags.line_limit > 0 && config->has_darlin()) {
    ours.words.insert(ours.words.end(),
                      {"--set", fmt::format("training_data.max_num_lines_per_file={}", flags.line_limit)});
  } else if (flags.line_limit > 0) {
    ours.ignored.emplace_back("-line_limit");  // there it was for batch training only
  }
  if (role == "worker") {
    ours.words.insert(ours.words.end(), {"--threads", "1"});  // each thread would be a worker more
    if (flags.num_threads > 0) ours.ignored.emplace_back("-num_threads");
    if (flags.my_node) {
      ours.environment = {{"PSCLOUD_ROLE", "worker"},
                          {"PSCLOUD_SCHEDULER", address_of(flags.scheduler.value_or(DmlcNode{}))}};
    }
  } else if (!evaluates && flags.num_servers > 0) {
    add_count("--servers", flags.num_servers, ours.words);
    add_count("--workers", std::max(1, flags.num_workers), ours.words);
    add_count("--threads", flags.num_threads, ours.words);
  } else {
    add_count("--threads", std::max(evaluates ? 0 : flags.num_workers, flags.num_threads), ours.words);
  }
  return ours;
}

Result<std::vector<std::string>> through_the_old_door(std::span<const std::string> words) {
  const DmlcFlags flags = TRY(parse_dmlc_flags(words));
  PS::LM::Config config;
  const bool has_config = !flags.app_file.empty() || !flags.app_conf.empty();
  if (has_config) {
    TRY(read_config({.file = flags.app_file.empty() ? "/dev/null" : flags.app_file,
                     .appended = flags.app_conf,
                     .assignments = {},
                     .strict = false},
                    config));
  }
  const OurCommand ours = TRY(translate(flags, has_config ? &config : nullptr, process_environment()));
  std::string shown = "pscloud";
  for (const std::string& word : ours.words) shown += " " + quoted_for_shell(word);
  for (auto one = ours.environment.rbegin(); one != ours.environment.rend(); ++one) {
    shown.insert(0, fmt::format("{}={} ", one->first, quoted_for_shell(one->second)));
    setenv(one->first.c_str(), one->second.c_str(), 1);  // no other thread runs yet
  }
  fmt::print(stderr, "pscloud: flags of dmlc; that is: {}\n", escape_controls(shown));
  if (!ours.ignored.empty()) fmt::print(stderr, "pscloud: of no effect here: {}\n", fmt::join(ours.ignored, ", "));
  return ours.words;
}

}  // namespace pscloud
