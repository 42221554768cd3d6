#include "learn/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "base/bytes.h"
#include "base/log.h"
#include "io/config_file.h"
#include "io/crc32c.h"
#include "learn/batch_state.h"
#include "learn/row_file.h"

namespace pscloud {

using PS::LM::Checkpoint;

namespace {

constexpr std::string_view kManifestHead = "# A checkpoint of pscloud. CRC-32C of all below this line: ";
constexpr size_t kCheckDigits = 8;
constexpr std::string_view kCheckpointName = "checkpoint-";
constexpr uint64_t kManifestBytesMax = 64 << 20;

// What a file's name says of it: nothing if it is none of ours.
struct CheckpointName {
  uint64_t number = 0;
  bool manifest = false;
};
std::optional<CheckpointName> name_of_file(const std::string& uri) {
  std::string_view name = std::string_view(uri).substr(uri.rfind('/') + 1);
  if (!name.starts_with(kCheckpointName)) return std::nullopt;
  name.remove_prefix(kCheckpointName.size());
  CheckpointName found;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), found.number);
  if (error != std::errc()) return std::nullopt;
  found.manifest = rest == name.data() + name.size();
  const std::string_view behind(rest);
  if (!found.manifest && !behind.starts_with("-table") && !behind.starts_with("-worker")) return std::nullopt;
  return found;
}

Result<std::vector<FileInfo>> files_in(FileStore& store, const std::string& folder) {
  auto files = store.list(folder);
  if (!files && files.error().code == Code::kNotFound) return std::vector<FileInfo>();
  return files;
}

std::string file_in(const std::string& folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

Error not_of_this(const std::string& uri) { return corrupt("{}: is whole, but not the file of this checkpoint", uri); }

Error nothing_to_resume(const std::string& folder) {
  return invalid("{}: there is no whole checkpoint to resume from: start without --resume", folder);
}

}  // namespace

std::string checkpoint_file(const std::string& folder, uint64_t number) {
  return fmt::format("{}{}", file_in(folder, kCheckpointName), number);
}

std::string checkpoint_part_file(const std::string& folder, uint64_t number, size_t table, size_t part) {
  return fmt::format("{}-table{}-part{}", checkpoint_file(folder, number), table, part);
}

std::string checkpoint_worker_file(const std::string& folder, uint64_t number, size_t worker) {
  return fmt::format("{}-worker{}", checkpoint_file(folder, number), worker);
}

Result<> write_manifest(FileStore& store, const std::string& folder, const Checkpoint& checkpoint) {
  const std::string text = config_text(checkpoint);
  const auto output = TRY(store.create(checkpoint_file(folder, checkpoint.number())));
  TRY(output->write(fmt::format("{}{:0{}x}\n{}", kManifestHead, crc32c(bytes_of(text)), kCheckDigits, text)));
  return output->commit();
}

Result<Checkpoint> read_manifest(FileStore& store, const std::string& folder, uint64_t number) {
  const std::string uri = checkpoint_file(folder, number);
  const auto input = TRY(store.open(uri, {}));
  const std::string text = TRY(read_all(*input, kManifestBytesMax).at(uri));
  const size_t head = kManifestHead.size() + kCheckDigits + 1;
  if (!text.starts_with(kManifestHead) || text.size() < head) return corrupt("{}: is no checkpoint", uri);
  const std::string below = text.substr(head);
  const std::string check = fmt::format("{:0{}x}\n", crc32c(bytes_of(below)), kCheckDigits);
  if (text.substr(kManifestHead.size(), kCheckDigits + 1) != check) {
    return corrupt("{}: damaged: it does not have its checksum", uri);
  }
  Checkpoint checkpoint;
  if (const auto parsed = parse_config(below, uri, checkpoint); !parsed) return corrupt("{}", parsed.error().message);
  if (checkpoint.number() != number) return corrupt("{}: is that of number {}", uri, checkpoint.number());
  return checkpoint;
}

Result<std::vector<uint64_t>> list_checkpoints(FileStore& store, const std::string& folder) {
  std::vector<uint64_t> numbers;
  for (const FileInfo& file : TRY(files_in(store, folder))) {
    if (const auto name = name_of_file(file.uri); name && name->manifest) numbers.push_back(name->number);
  }
  std::ranges::sort(numbers, std::greater());
  return numbers;
}

Result<> verify_checkpoint(FileStore& store, const std::string& folder, const Checkpoint& checkpoint) {
  for (int table = 0; table < checkpoint.table_size(); ++table) {
    for (int part = 0; part < checkpoint.table(table).part_size(); ++part) {
      const Checkpoint::Part& expected = checkpoint.table(table).part(part);
      const std::string uri = checkpoint_part_file(folder, checkpoint.number(), table, part);
      const auto nothing = [](const RowFileInfo&, auto, auto) { return Result<>(); };
      const RowFileInfo info = TRY(read_row_file(store, uri, nothing));
      if (info.rows != expected.rows() || info.check != expected.check()) return not_of_this(uri);
    }
  }
  for (const auto& state : checkpoint.batch().state()) {
    const std::string uri = checkpoint_worker_file(folder, checkpoint.number(), state.worker());
    if (TRY(verify_batch_state(store, uri)) != state.check()) return not_of_this(uri);
  }
  return {};
}

Result<Checkpoint> newest_checkpoint(FileStore& store, const CheckpointSettings& settings) {
  const std::string& folder = settings.folder;
  for (const uint64_t number : TRY(list_checkpoints(store, folder))) {
    auto checkpoint = read_manifest(store, folder, number);
    if (checkpoint) TRY(check_same_settings(checkpoint->config(), settings.config).at(checkpoint_file(folder, number)));
    const Result<> whole = checkpoint ? verify_checkpoint(store, folder, *checkpoint) : checkpoint.error();
    if (whole) return checkpoint;
    if (whole.error().code != Code::kCorrupt && whole.error().code != Code::kNotFound) return whole.error();
    log_warning("{}; checkpoint {} is left out", whole.error().message, number);
  }
  return nothing_to_resume(folder);
}

Result<> remove_old_checkpoints(FileStore& store, const std::string& folder, uint64_t newest, uint32_t keep) {
  std::set<uint64_t> kept;
  for (const uint64_t number : TRY(list_checkpoints(store, folder))) {
    if (number <= newest && kept.size() < keep) kept.insert(number);
  }
  // What says that a checkpoint is there goes first, then the rest of it.
  const std::vector<FileInfo> files = TRY(files_in(store, folder));
  for (const bool manifests : {true, false}) {
    for (const FileInfo& file : files) {
      const auto name = name_of_file(file.uri);
      if (name && name->manifest == manifests && !kept.contains(name->number)) TRY(store.remove(file.uri));
    }
  }
  if (files.empty()) return {};  // there may be no folder
  return store.remove_unfinished(file_in(folder, kCheckpointName));
}

Result<> check_checkpoints_before_start(FileStore& store, const CheckpointSettings& settings) {
  if (!settings.enabled()) {
    if (settings.resume) return invalid("--resume: the config has no checkpoint.folder to resume from");
    return {};
  }
  const std::vector<uint64_t> numbers = TRY(list_checkpoints(store, settings.folder));
  if (settings.resume) {
    if (numbers.empty()) return nothing_to_resume(settings.folder);
    // One that is damaged is named when it is looked for in earnest.
    const auto newest = read_manifest(store, settings.folder, numbers.front());
    if (!newest) return {};
    return check_same_settings(newest->config(), settings.config).at(checkpoint_file(settings.folder, numbers.front()));
  }
  if (numbers.empty()) return {};
  return invalid("{}: has checkpoints of a run that did not end: go on with --resume, or remove them", settings.folder);
}

}  // namespace pscloud
