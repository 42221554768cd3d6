#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/file_store.h"
#include "learn/data_selection.h"
#include "learn/model_tables.h"
#include "learn/online_settings.h"
#include "pscloud/worker.h"

namespace PS::LM {
class OnlinePosition;
}

namespace pscloud {

// Where an online training is in its data: at the beginning, or where a checkpoint was made.
struct OnlinePosition {
  uint64_t checkpoint = 0;  // its number; 0: there is none
  uint32_t pass = 1;
  std::vector<bool> done;    // of the parts of the data, in this pass
  std::vector<double> sums;  // of progress so far; none: zeros
  uint64_t different = 0;    // examples so far, each once in a pass
  uint64_t repeated_parts = 0;
  EarlyStop early;  // of the passes that are over
};

// Places in the sums of progress that a checkpoint keeps.
inline constexpr uint32_t kProgressPlaces = 9;

// The files to learn from, cut into items of work.
struct OnlineData {
  std::vector<std::string> parts;  // each as often as it is wanted; a pass may have them in another order
  std::string hash;                // of the files' names and sizes, and of the cuts
};
// Workers share to look at them.
Result<OnlineData> online_data(Worker& worker, FileStore& store, std::span<const SelectedFile> files,
                               const OnlineSettings& settings);

// What a checkpoint keeps of a position.
void put_position(const OnlinePosition& position, const OnlineData& data, PS::LM::OnlinePosition& out);
// kInvalid if the data are others, kCorrupt if it makes no sense.
Result<OnlinePosition> get_position(const PS::LM::OnlinePosition& position, const OnlineData& data);

// Fills the tables, which have no rows yet, as the settings say: from the newest checkpoint, from a model, or not at
// all. `tables` are what checkpoints have: those of the model, and others. All workers call this alike, and are told
// the same.
Result<OnlinePosition> start_online(Worker& worker, FileStore& store, const OnlineSettings& settings,
                                    const ModelTables& model, std::span<const Table> tables, const OnlineData& data);

}  // namespace pscloud
