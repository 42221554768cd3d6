#include "learn/checkpoint.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "io/config_file.h"
#include "learn/checkpoint_files.h"
#include "learn/data_selection.h"
#include "learn/row_file.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {

using PS::LM::Checkpoint;

namespace {

constexpr const char* kRestorePool = "restore the tables";
constexpr const char* kRemovePool = "remove the checkpoints";
// A worker that is slow must be waited for: what it wrote or set later would belong to another moment.
Sharing one_by_one() { return {.slow = SlowWork::kAwait, .on_pause = {}}; }

// Places in the tally of a checkpoint: of each file rows and checksum, and behind all of them how many went wrong.
uint32_t rows_place(size_t file) { return static_cast<uint32_t>(2 * file); }
uint32_t check_place(size_t file) { return static_cast<uint32_t>(2 * file + 1); }

Result<RowFileInfo> write_part(Worker& worker, FileStore& store, const std::string& uri, const Table& table, int part) {
  RowFileWriter writer(TRY(store.create(uri)), table.spec.width);
  TRY(scan_part(worker, table, part, ScanKind::kState,
                [&](const ScannedRows& rows) { return writer.write(rows.keys, rows.floats); }));
  TRY(writer.commit());
  return writer.info();
}

Result<> write_last(FileStore& store, const CheckpointSettings& settings, Checkpoint checkpoint,
                    std::span<const double> sums, std::span<const Table> tables, size_t parts,
                    const std::function<Result<>(Checkpoint&)>& describe) {
  for (size_t file = 0; file < tables.size() * parts; ++file) {
    if (file % parts == 0) checkpoint.add_table()->set_name(tables[file / parts].spec.name);
    Checkpoint::Part& part = *checkpoint.mutable_table(static_cast<int>(file / parts))->add_part();
    part.set_rows(static_cast<uint64_t>(sums[rows_place(file)]));
    part.set_check(static_cast<uint32_t>(sums[check_place(file)]));
  }
  TRY(parse_config(settings.config, "settings", *checkpoint.mutable_config()));
  TRY(describe(checkpoint));
  TRY(write_manifest(store, settings.folder, checkpoint));
  return remove_old_checkpoints(store, settings.folder, checkpoint.number(), settings.keep);
}

}  // namespace

Result<> write_checkpoint(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                          std::span<const Table> tables, const std::function<Result<>(Checkpoint&)>& describe) {
  const auto parts = static_cast<size_t>(worker.parts());
  std::vector<std::string> files;
  for (size_t table = 0; table < tables.size(); ++table) {
    for (size_t part = 0; part < parts; ++part) {
      files.push_back(checkpoint_part_file(settings.folder, number, table, part));
    }
  }
  const auto failed = static_cast<uint32_t>(2 * files.size());
  const std::string pool = fmt::format("checkpoint {}", number);
  const auto write_one = [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const size_t file = item.number;
    const auto info = write_part(worker, store, item.text, tables[file / parts], static_cast<int>(file % parts));
    if (!info) {
      log_warning("checkpoint {} is not written: {}", number, info.error().message);
      return std::vector<Addend>{{failed, 1}};
    }
    return std::vector<Addend>{{rows_place(file), static_cast<double>(info->rows)},
                               {check_place(file), static_cast<double>(info->check)}};
  };
  TRY(share_work(worker, pool, files, write_one, one_by_one()));

  const std::vector<std::string> last{checkpoint_file(settings.folder, number)};
  const auto finish = [&](const WorkItem&) -> Result<std::vector<Addend>> {
    const std::vector<double> sums = TRY(worker.tally(pool, {}, 0, failed + 1));
    if (sums[failed] > 0) return std::vector<Addend>();
    Checkpoint checkpoint;
    checkpoint.set_number(number);
    checkpoint.set_cut_for_workers(TRY(workers_cut_for(worker, kTrainingData)));
    const auto written = write_last(store, settings, std::move(checkpoint), sums, tables, parts, describe);
    if (!written) log_warning("checkpoint {}: {}", number, written.error().message);
    return std::vector<Addend>();
  };
  return share_work(worker, pool + ", its end", last, finish, one_by_one());
}

Result<> restore_tables(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                        std::span<const Table> tables, uint32_t parts) {
  std::vector<std::string> files;
  for (size_t table = 0; table < tables.size(); ++table) {
    for (size_t part = 0; part < parts; ++part) {
      files.push_back(checkpoint_part_file(settings.folder, number, table, part));
    }
  }
  const auto restore_one = [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const Table& table = tables[item.number / parts];
    TRY(read_row_file(store, item.text, [&](const RowFileInfo& info, auto keys, auto floats) -> Result<> {
      if (info.width != table.spec.width) {
        return invalid("{}: has rows of {} values, and table '{}' of {}", item.text, info.width, table.spec.name,
                       table.spec.width);
      }
      return worker.set_rows(table, keys, floats, ScanKind::kState).wait().at(item.text);
    }));
    return std::vector<Addend>();
  };
  return share_work(worker, kRestorePool, files, restore_one, one_by_one());
}

Result<> remove_checkpoints(Worker& worker, FileStore& store, const CheckpointSettings& settings) {
  const std::vector<std::string> all{settings.folder};
  return share_work(
      worker, kRemovePool, all,
      [&](const WorkItem&) -> Result<std::vector<Addend>> {
        if (const auto removed = remove_old_checkpoints(store, settings.folder, 0, 0); !removed) {
          log_warning("the model is written, but its checkpoints are still there: {}", removed.error().message);
        }
        return std::vector<Addend>();
      },
      one_by_one());
}

}  // namespace pscloud
