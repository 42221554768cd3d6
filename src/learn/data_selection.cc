#include "learn/data_selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "data/example_place.h"
#include "io/file_pattern.h"
#include "learn/checkpoint_files.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr uint64_t kPartBytesMax = 64 << 20;
constexpr uint64_t kPartBytesMin = 256 << 10;  // as much as is read at a time
constexpr uint64_t kPartsWanted = 64;
constexpr uint64_t kPartsOfWorker = 4;  // at least
constexpr uint64_t kPartsMax = 100000;
constexpr uint32_t kCountsAtATime = 1 << 16;

// Examples of a file, by their numbers.
struct WantedLines {
  uint64_t begin = 0;
  uint64_t end = DataSelection::kAll;

  bool all() const { return begin == 0 && end == DataSelection::kAll; }
};

// Does something with each file, shared with the other workers. It gives `places` whole numbers below 2^53; of all
// files they are told, one file's after the other's.
Result<std::vector<uint64_t>> share_files(
    Worker& worker, const std::string& pool, std::span<const std::string> items, uint32_t places,
    const std::function<Result<std::vector<uint64_t>>(const std::string&)>& look) {
  TRY(share_work(worker, pool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    std::vector<Addend> addends;
    auto place = static_cast<uint32_t>(item.number) * places;
    for (const uint64_t number : TRY(look(item.text))) addends.push_back({place++, static_cast<double>(number)});
    return addends;
  }));
  std::vector<uint64_t> numbers;
  const auto all = static_cast<uint32_t>(items.size()) * places;
  for (uint32_t first = 0; first < all; first += kCountsAtATime) {
    for (const double number : TRY(worker.tally(pool, {}, first, std::min(kCountsAtATime, all - first)))) {
      numbers.push_back(static_cast<uint64_t>(number));
    }
  }
  return numbers;
}

std::string cut_for(const std::string& name) { return name + ": cut for"; }

// For whom the data were cut before, by any checkpoint of the run: all of them say the same.
Result<uint64_t> workers_before(FileStore& store, const std::string& folder) {
  for (const uint64_t number : TRY(list_checkpoints(store, folder))) {
    const auto manifest = read_manifest(store, folder, number);
    if (manifest) return manifest->cut_for_workers();
  }
  return 1;  // it ends soon, and says why
}

// Which lines of each file the range has, once it is known how many there are.
Result<std::vector<WantedLines>> lines_in_range(std::span<const uint64_t> counts, const DataSelection& selection,
                                                const std::string& name) {
  std::vector<WantedLines> wanted;
  uint64_t before = 0;
  for (const uint64_t count : counts) {
    const uint64_t begin = std::clamp(selection.begin, before, before + count) - before;
    uint64_t end = std::clamp(selection.end, before, before + count) - before;
    // To its end, be that where it may; unless what is behind was not even counted.
    if (end == count && begin < end && count < selection.lines_per_file_max) end = DataSelection::kAll;
    wanted.push_back({begin, end});
    before += count;
  }
  if (selection.begin >= before) {
    return invalid("{}.range begins at {}, but there are {} examples, counted from 0", name, selection.begin, before);
  }
  return wanted;
}

}  // namespace

Result<std::vector<SelectedFile>> select_files(Worker& worker, FileStore& store, std::span<const std::string> patterns,
                                               ExampleFormat format, const DataSelection& selection,
                                               const std::string& name) {
  std::vector<FileInfo> files = TRY(find_files(store, patterns));
  if (selection.files_per_worker_max < files.size()) {
    // Workers share the files, so that each has its number if all have so many together. How many they are is for the
    // first to say: some may have gone when the last one asks.
    const std::vector<std::string> once{"workers"};
    const auto count = [&](const std::string&) { return std::vector{static_cast<uint64_t>(worker.workers())}; };
    const uint64_t workers = TRY(share_files(worker, name + ": workers", once, 1, count)).front();
    if (selection.files_per_worker_max < files.size() / workers + 1) {
      files.resize(std::min<uint64_t>(files.size(), selection.files_per_worker_max * workers));
    }
  }
  std::vector<WantedLines> wanted(files.size(), {0, selection.lines_per_file_max});
  if (selection.begin > 0 || selection.end != DataSelection::kAll) {
    std::vector<std::string> uris;
    for (const FileInfo& file : files) uris.push_back(file.uri);
    const auto count = [&](const std::string& uri) -> Result<std::vector<uint64_t>> {
      return std::vector{TRY(find_example(store, uri, format, selection.lines_per_file_max)).number};
    };
    wanted = TRY(lines_in_range(TRY(share_files(worker, name + ": count", uris, 1, count)), selection, name));
  }

  // Where these lines begin and end in bytes. The items are parts, in lines instead.
  std::vector<std::string> cuts;
  std::vector<SelectedFile> selected;
  for (size_t i = 0; i < files.size(); ++i) {
    if (wanted[i].begin >= wanted[i].end) continue;
    selected.push_back({.info = files[i]});
    if (!wanted[i].all()) cuts.push_back(to_text({files[i].uri, wanted[i].begin, wanted[i].end}));
  }
  if (cuts.empty()) return selected;
  const auto locate = [&](const std::string& text) -> Result<std::vector<uint64_t>> {
    const FilePart lines = TRY(part_of_text(text));
    const uint64_t begin = lines.begin == 0 ? 0 : TRY(find_example(store, lines.uri, format, lines.begin)).offset;
    if (lines.end == DataSelection::kAll) return std::vector{begin, uint64_t{0}};
    return std::vector{begin, TRY(find_example(store, lines.uri, format, lines.end)).offset};
  };
  const std::vector<uint64_t> places = TRY(share_files(worker, name + ": cut", cuts, 2, locate));
  size_t next = 0;
  for (SelectedFile& file : selected) {
    if (next == cuts.size()) break;
    const FilePart lines = TRY(part_of_text(cuts[next]));
    if (lines.uri != file.info.uri) continue;
    file.begin = places[2 * next];
    if (lines.end != DataSelection::kAll) file.end = places[2 * next + 1];
    ++next;
  }
  return selected;
}

uint64_t selected_bytes(std::span<const SelectedFile> files, const DataSelection& selection) {
  uint64_t bytes = 0;
  for (const SelectedFile& file : files) {
    bytes += std::min(file.end, file.info.size) - std::min(file.begin, file.info.size);
  }
  return bytes * selection.replica;
}

uint64_t part_bytes(uint64_t bytes, uint64_t workers) {
  const uint64_t wanted = std::max(kPartsWanted, kPartsOfWorker * workers);
  return std::max(std::clamp(bytes / wanted, kPartBytesMin, kPartBytesMax), bytes / kPartsMax + 1);
}

Result<std::vector<std::string>> cut_into_items(Worker& worker, FileStore& store, std::span<const SelectedFile> files,
                                                const std::string& name, const CheckpointSettings& checkpoint) {
  uint64_t bytes = 0;
  for (const SelectedFile& file : files) bytes += file.info.size;
  const std::vector<std::string> once{"workers"};
  const auto count = [&](const std::string&) -> Result<std::vector<uint64_t>> {
    return std::vector{checkpoint.resume && checkpoint.enabled() ? TRY(workers_before(store, checkpoint.folder))
                                                                 : static_cast<uint64_t>(worker.workers())};
  };
  const uint64_t workers = TRY(share_files(worker, cut_for(name), once, 1, count)).front();
  const uint64_t each = part_bytes(bytes, workers);
  const auto may_be_cut = [&](const SelectedFile& file) { return file.info.size > each && file.info.gives_parts; };
  std::vector<std::string> large;
  for (const SelectedFile& file : files) {
    if (may_be_cut(file)) large.push_back(file.info.uri);
  }
  const auto look = [&](const std::string& uri) -> Result<std::vector<uint64_t>> {
    return std::vector{uint64_t{TRY(can_be_cut(store, FileInfo{.uri = uri, .version = {}}))}};
  };
  std::vector<uint64_t> looked;
  if (!large.empty()) looked = TRY(share_files(worker, name + ": heads", large, 1, look));
  std::vector<std::string> items;
  size_t next = 0;
  for (const SelectedFile& file : files) {
    const bool cut = may_be_cut(file) && looked[next++] > 0;
    for (FilePart part : cut_file(file.info, each, cut)) {
      part.begin = std::max(part.begin, file.begin);
      part.end = std::min(part.end, file.end);
      if (part.begin < part.end) items.push_back(to_text(part));
    }
  }
  return items;
}

Result<uint64_t> workers_cut_for(Worker& worker, const std::string& name) {
  return static_cast<uint64_t>(TRY(worker.tally(cut_for(name), {}, 0, 1)).front());
}

std::vector<std::string> items_of_pass(std::span<const std::string> items, const DataSelection& selection,
                                       uint32_t pass) {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < selection.replica; ++i) all.insert(all.end(), items.begin(), items.end());
  if (!selection.shuffle) return all;
  // By hand: what std::shuffle does with a generator is for each library to say.
  Random random(pass);
  for (size_t left = all.size(); left > 1; --left) std::swap(all[left - 1], all[random.below(left)]);
  return all;
}

Error no_examples(const std::string& name, uint64_t bad_lines) {
  if (bad_lines == 0) return invalid("{}: there is no example in its files", name);
  return invalid("{}: none of its {} lines is an example: are they written in another format?", name, bad_lines);
}

}  // namespace pscloud
