#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "data/file_part.h"
#include "data/parser.h"
#include "learn/checkpoint_settings.h"
#include "pscloud/worker.h"

namespace pscloud {

// The name of the data that are learned from.
inline constexpr const char* kTrainingData = "training_data";

// Which examples of some files are wanted: by default all of them, once. What is counted are lines that are not empty,
// or records. The limits on files and lines come first; the range counts what they leave, over the files in their
// order.
struct DataSelection {
  static constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

  uint64_t files_per_worker_max = kAll;
  uint64_t lines_per_file_max = kAll;
  uint64_t begin = 0;  // the range
  uint64_t end = kAll;
  uint32_t replica = 1;  // so many times
  bool shuffle = false;  // parts of files in random order

  bool operator==(const DataSelection&) const = default;
};

// A file, and which bytes of its text the examples begin in that are wanted.
struct SelectedFile {
  FileInfo info;
  uint64_t begin = 0;
  uint64_t end = DataSelection::kAll;
};

// The files that match, but for those that nothing is wanted of. Where lines must be counted the workers of the job
// share that, so all of them call this alike, under a name of its own; people see it, so let it be the config's for
// these data. kInvalid if nothing is left.
Result<std::vector<SelectedFile>> select_files(Worker& worker, FileStore& store, std::span<const std::string> patterns,
                                               ExampleFormat format, const DataSelection& selection,
                                               const std::string& name);

// That are read in one pass, as they are stored; of packed files about.
uint64_t selected_bytes(std::span<const SelectedFile> files, const DataSelection& selection);

// How large parts of files of so many bytes are, about, that so many workers share.
uint64_t part_bytes(uint64_t bytes, uint64_t workers);

// Parts of files as items of work: small enough that the last ones end at about the same time, large enough that to ask
// for one costs nothing. The workers share to look which files can be cut, as in select_files(). A run that is resumed
// has the parts that it had, however many workers there are now.
Result<std::vector<std::string>> cut_into_items(Worker& worker, FileStore& store, std::span<const SelectedFile> files,
                                                const std::string& name, const CheckpointSettings& checkpoint = {});
// How many workers the files of that name were cut for.
Result<uint64_t> workers_cut_for(Worker& worker, const std::string& name);

// Items as a pass over the data wants them: so many times, and in an order that only the number of the pass decides.
std::vector<std::string> items_of_pass(std::span<const std::string> items, const DataSelection& selection,
                                       uint32_t pass);

// Of data, by their name, in which nothing was an example.
Error no_examples(const std::string& name, uint64_t bad_lines);

}  // namespace pscloud
