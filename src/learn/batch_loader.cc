#include "learn/batch_loader.h"

#include <utility>
#include <vector>

#include "data/localizer.h"
#include "learn/data_selection.h"

namespace pscloud {
namespace {

// Places in the tally of what was loaded; behind them two for each group.
enum LoadPlace : uint32_t { kLoadedExamples, kLoadedBadLines, kLoadedInGroups, kLoadedGroups };
constexpr uint32_t kGroupNumbers = 1 << 16;

// A group counts once for each example that has it.
std::map<uint16_t, GroupCount> count_groups(const BatchExamples& part) {
  const RowBlock& block = part.rows;
  std::map<uint16_t, GroupCount> groups;
  if (block.groups.empty()) {
    GroupCount& all = groups[0];
    all.features = part.numbers.size();
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

std::vector<Addend> load_addends(const BatchExamples& read, uint64_t bad_lines) {
  std::vector<Addend> addends = {{kLoadedExamples, static_cast<double>(read.rows.rows())},
                                 {kLoadedBadLines, static_cast<double>(bad_lines)}};
  for (const auto& [group, count] : count_groups(read)) {
    if (group > 0) addends.push_back({kLoadedInGroups, 1});
    addends.push_back({kLoadedGroups + 2 * group, static_cast<double>(count.features)});
    addends.push_back({kLoadedGroups + 2 * group + 1, static_cast<double>(count.examples)});
  }
  return addends;
}

}  // namespace

BatchLoader::BatchLoader(Worker& worker, FileStore& store, const BatchSettings& settings)
    : worker_(worker),
      store_(store),
      settings_(settings),
      reader_(store, settings.format, settings.ignore_groups, kRowsInBatchBlock,
              {settings.cache_prefix.empty() ? nullptr : &store, settings.cache_prefix}) {}

Result<LoadedExamples> BatchLoader::load(const std::string& pool, const ShowReading& show) {
  const std::vector<SelectedFile> files =
      TRY(select_files(worker_, store_, settings_.files, settings_.format, settings_.selection, "training_data"));
  const std::vector<std::string> items = items_of_pass(
      TRY(cut_into_items(worker_, store_, files, kTrainingData, settings_.checkpoint)), settings_.selection, 1);
  // The sums of floats are the same in two runs only if each worker has the same examples.
  TRY(worker_.offer_work(pool, items, SlowWork::kRepeat, WorkDeal::kByRank));
  ReadMeter meter(worker_, pool + ", how far", selected_bytes(files, settings_.selection), show, clock_);
  LoadedExamples loaded;
  while (const auto item = TRY(worker_.take_work(pool))) {
    const FilePart part = TRY(part_of_text(item->text));
    TRY(reader_.open(part));
    BatchExamples read;
    NumberedRows block;
    while (TRY(reader_.next(block))) {
      read.append(block);
      TRY(meter.note(block.size(), reader_.stored_bytes()));
    }
    read.parts.push_back({item->text, read.rows.rows()});
    TRY(complaints_.complain(store_, part.uri, reader_, settings_.strict));
    // What another has done before is that one's.
    if (!TRY(worker_.finish_work(pool, item->number, load_addends(read, reader_.bad_lines().count)))) continue;
    loaded.mine.append(read);
    if (loaded.mine.numbers.size() > Localizer::kFeaturesMax) {
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

}  // namespace pscloud
