#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "io/file_pattern.h"

namespace pscloud {
namespace {

constexpr const char* kCpAbout = R"(Copies files, from and to wherever they are:

  pscloud cp clicks.txt s3://bucket/folder/
  pscloud cp 's3://bucket/folder/part-.*' data/
  pscloud cp -r model s3://bucket/model
  pscloud cp https://host/clicks.gz .

Several files, or a TO that ends with '/' or is a folder, keep their names; -r
copies what is in a folder, and in the folders within it. A file appears
under its new name when all of it is there: what is interrupted leaves nothing
half. AWS_ENDPOINT_URL_S3 names another store than Amazon's; keys come from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or the role of
the instance (docs/storage.md).)";

constexpr size_t kCopyBytes = 1 << 20;
constexpr uint64_t kShownEach = 8 << 20;
constexpr int kFoldersWithinMax = 100;

struct CpCommand {
  std::vector<std::string> from;
  std::string to;
  bool recursive = false;
  bool json = false;
};

struct Copy {
  FileInfo from;
  std::string to;
};

struct Copied {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

std::string with_slash(const std::string& folder) { return folder.ends_with('/') ? folder : folder + "/"; }

// What is in a folder, and in those within it, each under the same name below `to`.
Result<> plan_folder(FileStore& store, const std::string& folder, const std::string& to, int depth,
                     std::vector<Copy>& copies) {
  if (depth == kFoldersWithinMax) return invalid("{}: too many folders within each other", folder);
  for (FileInfo& file : TRY(store.list(folder))) {
    std::string name = to + last_name(file.uri);
    copies.push_back({.from = std::move(file), .to = std::move(name)});
  }
  for (const std::string& inner : TRY(store.list_folders(folder))) {
    const std::string name = last_name(inner.substr(0, inner.size() - 1));
    TRY(plan_folder(store, inner, to + name + "/", depth + 1, copies));
  }
  return {};
}

Result<std::vector<Copy>> plan(FileStore& store, const CpCommand& command) {
  std::vector<Copy> copies;
  if (command.recursive) {
    for (const std::string& from : command.from) {
      TRY(plan_folder(store, with_slash(from), with_slash(command.to), 0, copies));
      if (copies.empty()) return not_found("{}: there is nothing in it", from);
    }
    return copies;
  }
  std::vector<FileInfo> files = TRY(find_files(store, command.from));
  const bool folder = command.to.ends_with('/') || files.size() > 1 || store.list_folders(command.to).has_value();
  for (FileInfo& file : files) {
    std::string to = folder ? with_slash(command.to) + last_name(file.uri) : command.to;
    copies.push_back({.from = std::move(file), .to = std::move(to)});
  }
  return copies;
}

Result<> check_plan(std::vector<Copy> copies) {
  std::ranges::sort(copies, {}, &Copy::to);
  const auto twice = std::ranges::adjacent_find(copies, {}, &Copy::to);
  if (twice != copies.end()) {
    return invalid("{} and {} would both become {}: nothing was copied", twice->from.uri, std::next(twice)->from.uri,
                   twice->to);
  }
  for (const Copy& copy : copies) {
    if (copy.from.uri == copy.to) return invalid("{} is to be copied to itself", copy.to);
  }
  return {};
}

Result<Copied> copy_all(const CpCommand& command, const Cancelled& cancelled) {
  const auto store = make_file_store(cancelled);
  const std::vector<Copy> copies = TRY(plan(*store, command));
  TRY(check_plan(copies));
  uint64_t bytes_all = 0;
  for (const Copy& copy : copies) bytes_all += copy.from.size;
  ProgressLine progress;
  Copied copied;
  uint64_t next_shown = 0;
  std::vector<char> buffer(kCopyBytes);
  for (const Copy& copy : copies) {
    const auto input = TRY(store->open(copy.from.uri, {.version = copy.from.version}));
    const auto output = TRY(store->create(copy.to));
    while (const size_t count = TRY(input->read(buffer))) {
      if (cancelled()) return job_failed("interrupted");
      TRY(output->write({buffer.data(), count}));
      copied.bytes += count;
      if (copied.bytes < next_shown) continue;
      next_shown = copied.bytes + kShownEach;
      progress.show(
          fmt::format("{} of {} files, {} of {} MB", copied.files, copies.size(), copied.bytes >> 20, bytes_all >> 20));
    }
    TRY(output->commit());
    ++copied.files;
  }
  return copied;
}

int run_cp(const CpCommand& command) {
  const Interruption interruption;
  const auto copied = copy_all(command, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!copied) return fail(copied.error());
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("files", copied->files).field("bytes", copied->bytes).end_object();
    fmt::print("{}\n", json.text());
    return kExitDone;
  }
  fmt::print("{} file{}, {} bytes\n", copied->files, copied->files == 1 ? "" : "s", copied->bytes);
  return kExitDone;
}

}  // namespace

void add_cp(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<CpCommand>();
  const auto words = std::make_shared<std::vector<std::string>>();
  verb.add_option("from", *words, "files, or patterns of files; the last is TO, a file or a folder")
      ->type_name("FROM... TO")
      ->required()
      ->expected(2, 1 << 20);
  verb.add_flag("-r,--recursive", command->recursive, "folders, with all that is in them");
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kCpAbout);
  verb.callback([command, words, &action] {
    command->from.assign(words->begin(), words->end() - 1);
    command->to = words->back();
    action = [command] { return run_cp(*command); };
  });
}

}  // namespace pscloud
