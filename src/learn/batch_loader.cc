#include "learn/batch_loader.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "data/localizer.h"
#include "learn/data_selection.h"

namespace pscloud {
namespace {

// Places in the tally of what was loaded; behind them two for each group.
enum LoadPlace : uint32_t { kLoadedExamples, kLoadedBadLines, kLoadedInGroups, kLoadedGroups };
constexpr uint32_t kGroupNumbers = 1 << 16;

void append_rows(RowBlock& block, const RowSlice& rows) {
  const size_t before = block.keys.size();
  const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  // Values and groups of some parts may be left out.
  if (block.values.empty() && !rows.values.empty()) block.values.assign(before, 1);
  append(block.values, rows.values);
  if (!block.values.empty() && rows.values.empty()) block.values.resize(before + rows.keys.size(), 1);
  if (block.groups.empty() && !rows.groups.empty()) block.groups.assign(before, 0);
  append(block.groups, rows.groups);
  if (!block.groups.empty()) block.groups.resize(before + rows.keys.size(), 0);
  append(block.labels, rows.labels);
  append(block.keys, rows.keys);
  for (const size_t end : rows.ends) block.ends.push_back(before + end - rows.first);
}

// A group counts once for each example that has it.
std::map<uint16_t, GroupCount> count_groups(const RowBlock& block) {
  std::map<uint16_t, GroupCount> groups;
  if (block.groups.empty()) {
    GroupCount& all = groups[0];
    all.features = block.keys.size();
    for (size_t row = 0; row < block.rows(); ++row) all.examples += block.begin_of(row) < block.ends[row] ? 1 : 0;
    return groups;
  }
  std::vector<GroupCount> counts(kGroupNumbers);
  std::vector<size_t> last_row(kGroupNumbers);  // counted from 1, that has it
  for (size_t row = 0; row < block.rows(); ++row) {
    for (size_t i = block.begin_of(row); i < block.ends[row]; ++i) {
      const uint16_t group = block.groups[i];
      ++counts[group].features;
      if (std::exchange(last_row[group], row + 1) != row + 1) ++counts[group].examples;
    }
  }
  for (uint32_t group = 0; group < kGroupNumbers; ++group) {
    if (counts[group].features > 0) groups[static_cast<uint16_t>(group)] = counts[group];
  }
  return groups;
}

std::vector<Addend> load_addends(const ReadPart& read) {
  std::vector<Addend> addends = {{kLoadedExamples, static_cast<double>(read.rows.rows())},
                                 {kLoadedBadLines, static_cast<double>(read.bad_lines)}};
  for (const auto& [group, count] : count_groups(read.rows)) {
    if (group > 0) addends.push_back({kLoadedInGroups, 1});
    addends.push_back({kLoadedGroups + 2 * group, static_cast<double>(count.features)});
    addends.push_back({kLoadedGroups + 2 * group + 1, static_cast<double>(count.examples)});
  }
  return addends;
}

}  // namespace

Result<LoadedExamples> BatchLoader::load(const std::string& pool) {
  const std::vector<SelectedFile> files =
      TRY(select_files(worker_, store_, settings_.files, settings_.format, settings_.selection, "training_data"));
  const std::vector<std::string> items = items_of_pass(TRY(cut_into_items(store_, files)), settings_.selection, 1);
  TRY(worker_.offer_work(pool, items));
  LoadedExamples loaded;
  while (const auto item = TRY(worker_.take_work(pool))) {
    const ReadPart read = TRY(read_part(TRY(part_of_text(item->text))));
    // What another has done before is that one's.
    if (!TRY(worker_.finish_work(pool, item->number, load_addends(read)))) continue;
    append_rows(loaded.rows, slice_of(read.rows, 0, read.rows.rows()));
    if (loaded.rows.keys.size() > Localizer::kFeaturesMax) {
      return invalid("a worker can hold {} features of examples: take more workers", Localizer::kFeaturesMax);
    }
  }
  const double in_groups = TRY(worker_.tally(pool, {}, kLoadedInGroups, 1)).front();
  const uint32_t groups = in_groups > 0 ? kGroupNumbers : 1;
  const auto sums = TRY(worker_.tally(pool, {}, 0, kLoadedGroups + 2 * groups));
  loaded.examples = static_cast<uint64_t>(sums[kLoadedExamples]);
  loaded.bad_lines = static_cast<uint64_t>(sums[kLoadedBadLines]);
  for (uint32_t group = 0; group < groups; ++group) {
    const auto features = static_cast<uint64_t>(sums[kLoadedGroups + 2 * group]);
    if (features == 0) continue;
    loaded.groups[static_cast<uint16_t>(group)] = {features,
                                                   static_cast<uint64_t>(sums[kLoadedGroups + 2 * group + 1])};
  }
  return loaded;
}

// From the cache if it is there.
Result<ReadPart> BatchLoader::read_part(const FilePart& part) {
  std::optional<BlockCache> cache;
  std::string identity;
  if (!settings_.cache_prefix.empty()) {
    const char* const groups = settings_.ignore_groups ? "without groups" : "with groups";
    cache.emplace(store_, settings_.cache_prefix, fmt::format("{} {}", static_cast<int>(settings_.format), groups));
    if (auto found = TRY(cache->load(part))) return *std::move(found);
    identity = TRY(cache->identity_of(part));
  }
  const uint64_t bad_before = reader_.bad_lines();
  TRY(reader_.open(part));
  ReadPart read;
  while (true) {
    constexpr size_t kRowsAtATime = 10000;
    const RowSlice rows = TRY(reader_.next(kRowsAtATime));
    if (rows.rows() == 0) break;
    append_rows(read.rows, rows);
  }
  read.bad_lines = reader_.bad_lines() - bad_before;
  TRY(complaints_.complain(store_, reader_, settings_.strict));
  // A file with bad lines is read again, so that they are named again.
  if (cache && read.bad_lines == 0) {
    if (const auto saved = cache->save(part, identity, read); !saved) {
      log_warning("{}; what was read is not kept for the next time", saved.error().message);
    }
  }
  return read;
}

}  // namespace pscloud
