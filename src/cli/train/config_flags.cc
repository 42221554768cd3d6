#include "cli/train/config_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "io/config_file.h"
#include "io/file_pattern.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

// Behind blanks and comments.
bool begins_with_word(std::string_view text, std::string_view word) {
  while (true) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
    if (!text.starts_with('#')) return text.starts_with(word);
    text.remove_prefix(std::min(text.size(), text.find('\n')));
  }
}

// Whether FIELD=VALUE is about a field, or about one within it. A list has what was set alone.
bool sets(std::string_view assignment, std::string_view field) {
  const std::string_view path = assignment.substr(0, assignment.find('='));
  field = field.substr(0, field.ends_with(']') ? field.rfind('[') : std::string_view::npos);
  return path == field || (path.starts_with(field) && path[field.size()] == '.');
}

}  // namespace

void add_config_flags(CLI::App& verb, ConfigFlags& flags, const char* about) {
  verb.add_option("config", flags.file, about)->type_name("CONF")->required();
  verb.add_option("--append", flags.appended, "text of a config, to go behind the file's")->type_name("TEXT");
  verb.add_option("--set", flags.assignments, "FIELD=VALUE instead of what the config says")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  verb.add_flag("--strict", flags.strict, "end at the first line that is no example");
}

std::vector<std::string> words_of(const ConfigFlags& flags) {
  std::vector<std::string> words{flags.file};
  if (!flags.appended.empty()) words.insert(words.end(), {"--append", flags.appended});
  for (const std::string& one : flags.assignments) words.insert(words.end(), {"--set", one});
  if (flags.strict) words.emplace_back("--strict");
  return words;
}

Result<> parse_learning_config(std::string_view text, std::string_view name, PS::LM::Config& config) {
  if (!begins_with_word(text, "linear_method")) return parse_config(text, name, config);
  PS::LM::WrappedConfig wrapped;
  TRY(parse_config(text, name, wrapped));
  config = std::move(*wrapped.mutable_linear_method());
  return {};
}

std::string place_in_config(const ConfigFlags& flags, const std::string& complaint) {
  const std::string field = complaint.substr(0, complaint.find_first_of(" :"));
  if (std::ranges::any_of(flags.assignments, [&](const std::string& one) { return sets(one, field); })) return "--set";
  const auto text = read_config_text(*make_file_store(), flags.file);
  if (!text) return flags.file;
  const std::string place = begins_with_word(*text, "linear_method")
                                ? config_place(*text, "linear_method." + field, PS::LM::WrappedConfig())
                                : config_place(*text, field, PS::LM::Config());
  if (!place.empty()) return fmt::format("{}:{}", flags.file, place);
  const std::string place_behind = config_place(flags.appended, field, PS::LM::Config());
  return place_behind.empty() ? flags.file : fmt::format("--append:{}", place_behind);
}

Result<> check_config_files(const ConfigFlags& flags, FileStore& store, std::span<const std::string> patterns,
                            const std::string& field) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    auto found = find_files(store, patterns.subspan(i, 1));
    const std::string place = found ? "" : place_in_config(flags, fmt::format("{}[{}]", field, i));
    TRY(std::move(found).at(place));
  }
  return {};
}

Result<> read_config(const ConfigFlags& flags, PS::LM::Config& config) {
  const std::string text = TRY(read_config_text(*make_file_store(), flags.file));
  TRY(parse_learning_config(text, flags.file, config));
  TRY(append_config(flags.appended, "--append", config));
  for (const std::string& one : flags.assignments) TRY(set_config_field(one, config).at("--set"));
  return {};
}

}  // namespace pscloud
