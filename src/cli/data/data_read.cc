// `pscloud data head` and `stats`: looks at files.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>

#include "base/json.h"
#include "cli/data/data_flags.h"
#include "cli/data/data_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "data/key_counter.h"

namespace pscloud {
namespace {

struct DataReadCommand {
  DataFlags data;
  uint64_t count = 10;
  bool json = false;
};

// All of an example, on a line.
void print_json(const RowSlice& rows, size_t row) {
  JsonWriter json;
  json.begin_object().field("label", static_cast<double>(rows.labels[row])).key("features").begin_array();
  for (size_t f = (row == 0 ? rows.first : rows.ends[row - 1]) - rows.first; f < rows.ends[row] - rows.first; ++f) {
    json.begin_object().field("key", rows.keys[f]);
    if (!rows.values.empty()) json.field("value", static_cast<double>(rows.values[f]));
    if (!rows.groups.empty()) json.field("group", uint64_t{rows.groups[f]});
    json.end_object();
  }
  json.end_array().end_object();
  fmt::print("{}\n", json.text());
}

int run_head(const DataReadCommand& command) {
  const Interruption interruption;
  constexpr size_t kFeaturesShown = 8;
  uint64_t shown = 0;
  const auto read = for_each_example(command.data, interruption.cancelled(), [&](const RowSlice& rows) -> Result<bool> {
    for (size_t i = 0; i < rows.rows() && shown < command.count; ++i, ++shown) {
      if (command.json) {
        print_json(rows, i);
        continue;
      }
      const size_t begin = (i == 0 ? rows.first : rows.ends[i - 1]) - rows.first;
      const size_t end = rows.ends[i] - rows.first;
      fmt::print("{:g} ", rows.labels[i]);
      for (size_t f = begin; f < std::min(end, begin + kFeaturesShown); ++f) {
        fmt::print(" {}", rows.keys[f]);
        if (!rows.values.empty()) fmt::print(":{:g}", rows.values[f]);
        if (!rows.groups.empty()) fmt::print(" ({})", rows.groups[f]);
      }
      const size_t more = end - std::min(end, begin + kFeaturesShown);
      fmt::print("{}\n", more == 0 ? "" : fmt::format(" and {} more", more));
    }
    return shown < command.count;
  });
  if (interruption.happened()) return fail_interrupted();
  return read ? kExitDone : fail(read.error());
}

struct Stats {
  uint64_t examples = 0;
  uint64_t positive = 0;
  uint64_t features = 0;
  size_t features_max = 0;
  float value_min = std::numeric_limits<float>::infinity();
  float value_max = -std::numeric_limits<float>::infinity();
  KeyCounter keys;
};

int run_stats(const DataReadCommand& command) {
  const Interruption interruption;
  Stats stats;
  const auto read = for_each_example(command.data, interruption.cancelled(), [&](const RowSlice& rows) -> Result<bool> {
    stats.examples += rows.rows();
    stats.positive += static_cast<uint64_t>(std::ranges::count_if(rows.labels, [](float label) { return label > 0; }));
    stats.features += rows.keys.size();
    for (size_t i = 0; i < rows.rows(); ++i) {
      stats.features_max = std::max(stats.features_max, rows.ends[i] - (i == 0 ? rows.first : rows.ends[i - 1]));
    }
    for (const Key key : rows.keys) stats.keys.add(key);
    for (const float value : rows.values) {
      stats.value_min = std::min(stats.value_min, value);
      stats.value_max = std::max(stats.value_max, value);
    }
    return true;
  });
  if (interruption.happened()) return fail_interrupted();
  if (!read) return fail(read.error());
  if (stats.value_min > stats.value_max) stats.value_min = stats.value_max = 1;
  const auto examples = static_cast<double>(std::max<uint64_t>(1, stats.examples));
  const double share = static_cast<double>(stats.positive) / examples;
  const double mean = static_cast<double>(stats.features) / examples;
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("files", read->files).field("bytes", read->bytes).field("examples", stats.examples);
    json.field("positive_share", share).field("features", stats.features).field("features_mean", mean);
    json.field("features_max", uint64_t{stats.features_max}).field("keys", stats.keys.count());
    json.field("value_min", static_cast<double>(stats.value_min))
        .field("value_max", static_cast<double>(stats.value_max));
    json.field("bad_lines", read->bad_lines).end_object();
    fmt::print("{}\n", json.text());
    return kExitDone;
  }
  fmt::print("files       {}, {} MB\n", read->files, read->bytes >> 20);
  fmt::print("examples    {}, {:.2f}% positive\n", stats.examples, share * 100);
  fmt::print("features    {}, {:.1f} of an example, at most {}\n", stats.features, mean, stats.features_max);
  fmt::print("keys        about {} different ones\n", stats.keys.count());
  fmt::print("values      {:g} to {:g}\n", stats.value_min, stats.value_max);
  fmt::print("bad lines   {}\n", read->bad_lines);
  return kExitDone;
}

}  // namespace

void add_data_head(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<DataReadCommand>();
  add_data_flags(verb, command->data, "patterns of the files to read");
  verb.add_option("-n", command->count, "how many examples [10]")->type_name("N");
  verb.add_flag("--json", command->json, "for programs: a line for each example, with all features");
  verb.footer(
      "Shows the label and the first features of examples: key, value and (group), as the parser\nunderstands them.");
  verb.callback([command, &action] { action = [command] { return run_head(*command); }; });
}

void add_data_stats(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<DataReadCommand>();
  add_data_flags(verb, command->data, "patterns of the files to read");
  verb.add_flag("--json", command->json, "for programs");
  verb.footer("Reads all of them. Different keys are estimated, to about one percent.");
  verb.callback([command, &action] { action = [command] { return run_stats(*command); }; });
}

}  // namespace pscloud
