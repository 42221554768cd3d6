#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/verb.h"
#include "io/file_pattern.h"

namespace pscloud {
namespace {

constexpr const char* kLsAbout = R"(Lists a folder, a file, or the files that a pattern matches:

  pscloud ls data
  pscloud ls s3://bucket/folder/
  pscloud ls 's3://bucket/folder/part-.*'

A pattern is a folder, '/', and a regular expression for the whole name.
AWS_ENDPOINT_URL_S3 names another store than Amazon's; keys come from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or the role of
the instance (docs/storage.md).)";

struct LsCommand {
  std::string uri;
  bool json = false;
};

struct Listing {
  std::vector<std::string> folders;
  std::vector<FileInfo> files;
};

Result<Listing> look(FileStore& store, const std::string& uri) {
  // What TRY leaves in the middle of a list of initializers is not destroyed, so each has its own line.
  if (is_file_pattern(uri)) {
    std::vector<FileInfo> files = TRY(find_files(store, {{uri}}));
    return Listing{.folders = {}, .files = std::move(files)};
  }
  if (!uri.ends_with('/')) {
    auto file = store.stat(uri);
    if (file) return Listing{.folders = {}, .files = {*std::move(file)}};
    // It may be the name of a folder; if not, what was said of the file tells more.
    if (file.error().code != Code::kNotFound && file.error().code != Code::kInvalid) return file.error();
    auto folders = store.list_folders(uri);
    if (!folders) return file.error();
    std::vector<FileInfo> files = TRY(store.list(uri));
    return Listing{.folders = *std::move(folders), .files = std::move(files)};
  }
  std::vector<std::string> folders = TRY(store.list_folders(uri));
  std::vector<FileInfo> files = TRY(store.list(uri));
  return Listing{.folders = std::move(folders), .files = std::move(files)};
}

void print_listing(const Listing& listing, bool json) {
  if (json) {
    JsonWriter writer;
    writer.begin_object().key("folders").begin_array();
    for (const std::string& folder : listing.folders) writer.value(folder);
    writer.end_array().key("files").begin_array();
    for (const FileInfo& file : listing.files) {
      writer.begin_object()
          .field("uri", file.uri)
          .field("bytes", file.size)
          .field("version", file.version)
          .end_object();
    }
    fmt::print("{}\n", writer.end_array().end_object().text());
    return;
  }
  for (const std::string& folder : listing.folders) fmt::print("{:>14}  {}\n", "folder", escape_controls(folder));
  for (const FileInfo& file : listing.files) fmt::print("{:>14}  {}\n", file.size, escape_controls(file.uri));
}

int run_ls(const LsCommand& command) {
  const Interruption interruption;
  const auto store = make_file_store(interruption.cancelled());
  const auto listing = look(*store, command.uri);
  if (interruption.happened()) return fail_interrupted();
  if (!listing) return fail(listing.error());
  print_listing(*listing, command.json);
  return kExitDone;
}

}  // namespace

void add_ls(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<LsCommand>();
  verb.add_option("uri", command->uri, "a folder, a file or a pattern")->type_name("URI")->required();
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kLsAbout);
  verb.callback([command, &action] { action = [command] { return run_ls(*command); }; });
}

}  // namespace pscloud
