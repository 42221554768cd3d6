#include "learn/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "io/config_file.h"
#include "io/memory_store.h"
#include "learn/row_file.h"

namespace pscloud {
namespace {

using PS::LM::Checkpoint;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointFilesTest : public testing::Test {
 protected:
  CheckpointFilesTest() {
    set_log_level(LogLevel::kSilent);
    settings_.folder = "ck";
    settings_.config = "async_sgd { algo: FTRL minibatch: 500 }";
  }
  ~CheckpointFilesTest() override { set_log_level(LogLevel::kInfo); }

  Checkpoint write(uint64_t number) {
    Checkpoint checkpoint;
    checkpoint.set_number(number);
    EXPECT_TRUE(parse_config(settings_.config, "settings", *checkpoint.mutable_config()));
    auto& table = *checkpoint.add_table();
    table.set_name("weights");
    for (int part = 0; part < 2; ++part) {
      RowFileWriter writer(store_.create(checkpoint_part_file("ck", number, 0, part)).value(), 1);
      EXPECT_TRUE(writer.write(std::vector<Key>{number}, std::vector<float>{0.5f}));
      EXPECT_TRUE(writer.commit());
      table.add_part()->set_rows(1);
      table.mutable_part(part)->set_check(writer.info().check);
    }
    EXPECT_TRUE(write_manifest(store_, "ck", checkpoint));
    return checkpoint;
  }
  void damage(const std::string& uri, size_t at) {
    std::string bytes = store_.get(uri);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
    store_.put(uri, bytes);
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    const std::vector<FileInfo> found = store_.list("ck").value();
    for (const FileInfo& file : found) names.push_back(file.uri);
    return names;
  }

  MemoryStore store_;
  CheckpointSettings settings_;
};

TEST_F(CheckpointFilesTest, TheNewestIsFound) {
  for (const uint64_t number : {9, 10, 8}) write(number);
  EXPECT_THAT(list_checkpoints(store_, "ck").value(), ElementsAre(10, 9, 8));
  const Checkpoint newest = newest_checkpoint(store_, settings_).value();
  EXPECT_EQ(newest.number(), 10u);
  EXPECT_EQ(newest.table(0).name(), "weights");
  EXPECT_EQ(newest.config().async_sgd().minibatch(), 500);
}

TEST_F(CheckpointFilesTest, NoByteOfAManifestMayBeOtherThanItWas) {
  write(1);
  for (size_t at = 0; at < store_.get("ck/checkpoint-1").size(); ++at) {
    damage("ck/checkpoint-1", at);
    const auto read = read_manifest(store_, "ck", 1);
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, Code::kCorrupt);
    damage("ck/checkpoint-1", at);
  }
  EXPECT_TRUE(read_manifest(store_, "ck", 1));
  store_.put("ck/checkpoint-2", store_.get("ck/checkpoint-1"));
  EXPECT_THAT(read_manifest(store_, "ck", 2).error().message, HasSubstr("is that of number 1"));
}

TEST_F(CheckpointFilesTest, OneThatIsNotWholeIsLeftOut) {
  for (const uint64_t number : {1, 2, 3, 4, 5}) write(number);
  damage("ck/checkpoint-5", 100);
  damage("ck/checkpoint-4-table0-part1", 30);
  ASSERT_TRUE(store_.remove("ck/checkpoint-3-table0-part0"));
  store_.put("ck/checkpoint-2-table0-part0", store_.get("ck/checkpoint-1-table0-part0"));
  EXPECT_EQ(newest_checkpoint(store_, settings_).value().number(), 1u);
  damage("ck/checkpoint-1", 100);
  EXPECT_THAT(newest_checkpoint(store_, settings_).error().message, HasSubstr("no whole checkpoint to resume from"));
}

TEST_F(CheckpointFilesTest, OldOnesAndLeftoversAreRemoved) {
  for (const uint64_t number : {1, 2, 3, 4}) write(number);
  store_.put("ck/notes", "the user's");
  store_.put("ck/checkpoint-plan.txt", "the user's");
  ASSERT_TRUE(store_.remove("ck/checkpoint-2"));  // a run was killed in between
  ASSERT_TRUE(remove_old_checkpoints(store_, "ck", 3, 2));
  EXPECT_THAT(files(), ElementsAre("ck/checkpoint-1", "ck/checkpoint-1-table0-part0", "ck/checkpoint-1-table0-part1",
                                   "ck/checkpoint-3", "ck/checkpoint-3-table0-part0", "ck/checkpoint-3-table0-part1",
                                   "ck/checkpoint-plan.txt", "ck/notes"));
  ASSERT_TRUE(remove_old_checkpoints(store_, "ck", 0, 0));
  EXPECT_THAT(files(), ElementsAre("ck/checkpoint-plan.txt", "ck/notes"));
}

TEST_F(CheckpointFilesTest, OtherSettingsAreNamed) {
  write(1);
  settings_.resume = true;
  EXPECT_TRUE(check_checkpoints_before_start(store_, settings_));
  settings_.config = "async_sgd { algo: FTRL minibatch: 600 } loss { type: LOGIT }";
  for (const auto& refused :
       {check_checkpoints_before_start(store_, settings_), Result<>(newest_checkpoint(store_, settings_).error())}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("ck/checkpoint-1: it was made with other settings"));
    EXPECT_THAT(refused.error().message, HasSubstr("async_sgd.minibatch: 500 -> 600"));
    EXPECT_THAT(refused.error().message, HasSubstr("loss"));
  }
}

TEST_F(CheckpointFilesTest, ARunBeginsOnlyWhereItCan) {
  EXPECT_TRUE(check_checkpoints_before_start(store_, settings_));
  settings_.resume = true;
  EXPECT_THAT(check_checkpoints_before_start(store_, settings_).error().message, HasSubstr("start without --resume"));
  write(1);
  EXPECT_TRUE(check_checkpoints_before_start(store_, settings_));
  settings_.resume = false;
  EXPECT_THAT(check_checkpoints_before_start(store_, settings_).error().message, HasSubstr("go on with --resume"));
  settings_.folder = "";
  EXPECT_TRUE(check_checkpoints_before_start(store_, settings_));
  settings_.resume = true;
  EXPECT_THAT(check_checkpoints_before_start(store_, settings_).error().message, HasSubstr("no checkpoint.folder"));
}

}  // namespace
}  // namespace pscloud
