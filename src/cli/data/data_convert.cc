#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/data/data_flags.h"
#include "cli/data/data_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "data/text_writer.h"
#include "learn/data_selection.h"
#include "learn/data_settings.h"

namespace pscloud {
namespace {

struct ConvertCommand {
  DataFlags data;
  std::string to;
  std::string out;
  bool json = false;
};

struct Converted {
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
};

Result<Converted> convert(const ConvertCommand& command, const Cancelled& cancelled) {
  const ExampleFormat format = TRY(example_format_named(command.to));
  const auto store = make_file_store(cancelled);
  const auto output = TRY(store->create(command.out));
  uint64_t written = 0;
  std::string text;
  const ReadCounts read = TRY(for_each_example(command.data, cancelled, [&](const RowSlice& rows) -> Result<bool> {
    text.clear();
    TRY(append_text(format, rows, written, text));
    TRY(output->write(text));
    written += rows.rows();
    return true;
  }));
  if (written == 0) return no_examples(command.data.patterns.front(), read.bad_lines);
  TRY(output->commit());
  return Converted{.examples = written, .bad_lines = read.bad_lines};
}

void print_converted(const Converted& converted, const ConvertCommand& command) {
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("examples", converted.examples).field("bad_lines", converted.bad_lines).end_object();
    fmt::print("{}\n", json.text());
    return;
  }
  fmt::print("{} examples in {}\n", converted.examples, command.out);
  if (converted.bad_lines > 0) fmt::print("{} bad lines were left out\n", converted.bad_lines);
}

}  // namespace

void add_data_convert(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ConvertCommand>();
  add_data_flags(verb, command->data, "patterns of the files to read");
  verb.add_option("--to", command->to, "LIBSVM, VW, SPARSE, SPARSE_BINARY, ADFEA, TERAFEA, CRITEO or PROTO")
      ->type_name("NAME")
      ->required();
  verb.add_option("--out", command->out, "the file to write")->type_name("FILE")->required();
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(R"(Reads examples in one format and writes them in another:

  pscloud data convert 'data/part.*' --format ADFEA --to LIBSVM --out all.libsvm

What the other format has no place for, such as values in ADFEA, is an error. A
line that is no example is counted and left out; with --strict it is an error.)");
  verb.callback([command, &action] {
    action = [command] {
      const Interruption interruption;
      const auto written = convert(*command, interruption.cancelled());
      if (interruption.happened()) return fail_interrupted();
      if (!written) return fail(written.error());
      print_converted(*written, *command);
      return kExitDone;
    };
  });
}

}  // namespace pscloud
