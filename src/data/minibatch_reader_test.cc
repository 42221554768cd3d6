#include "data/minibatch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

// What a reader makes of a part: labels, and the keys of all features.
struct ReadThrough {
  std::vector<float> labels;
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<size_t> sizes;  // of the minibatches

  bool operator==(const ReadThrough&) const = default;
};

Result<ReadThrough> read_through(MinibatchReader& reader, const FilePart& part, bool keep = true) {
  TRY(reader.open(part, keep));
  ReadThrough all;
  NumberedRows rows;
  while (TRY(reader.next(rows))) {
    all.labels.insert(all.labels.end(), rows.rows().labels.begin(), rows.rows().labels.end());
    all.values.insert(all.values.end(), rows.rows().values.begin(), rows.rows().values.end());
    for (const uint32_t column : rows.columns()) all.keys.push_back(rows.keys()[column]);
    all.sizes.push_back(rows.size());
  }
  return all;
}

class MinibatchReaderTest : public testing::Test {
 protected:
  MinibatchReaderTest() {
    set_log_level(LogLevel::kSilent);
    std::string text;
    for (int i = 0; i < 25; ++i) text += fmt::format("{} {}:{} 3:1\n", i, 100 - i, i * 0.5);
    store_.put("f", text + "no line\n1 2:x\n");
  }
  ~MinibatchReaderTest() override { set_log_level(LogLevel::kInfo); }

  MinibatchReader reader(FileStore* cache, size_t rows = 10) {
    return {store_, ExampleFormat::kLibsvm, true, rows, {cache, "c_"}};
  }
  std::string only_file() {
    const auto files = files_.list("").value();
    EXPECT_EQ(files.size(), 1u);
    return files[0].uri;
  }

  MemoryStore store_;
  MemoryStore files_{{}, 1 << 20};
};

TEST_F(MinibatchReaderTest, AMinibatchOfTooManyFeaturesIsRefused) {
  MinibatchReader enough(store_, ExampleFormat::kLibsvm, true, 10, {}, Labels::kNeeded, 20);
  EXPECT_TRUE(read_through(enough, {"f"}));
  MinibatchReader few(store_, ExampleFormat::kLibsvm, true, 10, {}, Labels::kNeeded, 19);
  const auto read = read_through(few, {"f"});
  EXPECT_EQ(read.error().code, Code::kInvalid);
  EXPECT_EQ(read.error().message, "f: 10 examples together have 20 features, more than 19: take smaller minibatches");
}

TEST_F(MinibatchReaderTest, TheCacheGivesWhatTheTextDid) {
  MinibatchReader plain = reader(nullptr);
  const ReadThrough read = read_through(plain, {"f"}).value();
  EXPECT_THAT(read.sizes, ElementsAre(10, 10, 5));
  EXPECT_EQ(read.keys[0], 100u);
  EXPECT_EQ(plain.bad_lines().count, 2u);
  const uint64_t bytes = plain.stored_bytes();
  EXPECT_EQ(bytes, store_.get("f").size());

  MinibatchReader first = reader(&files_);
  EXPECT_EQ(read_through(first, {"f"}).value(), read);
  MinibatchReader second = reader(&files_);
  for (MinibatchReader* again : {&first, &second}) {
    const uint64_t before = again->stored_bytes();
    EXPECT_EQ(read_through(*again, {"f"}).value(), read);
    EXPECT_EQ(again->stored_bytes() - before, bytes);
    // Bad lines come back with their places.
    EXPECT_EQ(again->bad_lines().count, 2u);
    ASSERT_EQ(again->bad_lines().first.size(), 2u);
    EXPECT_EQ(again->bad_lines().first[1].offset, plain.bad_lines().first[1].offset);
  }
}

TEST_F(MinibatchReaderTest, ReadsTheCacheAndNotTheText) {
  MinibatchReader first = reader(&files_);
  const ReadThrough read = read_through(first, {"f"}).value();
  // A text of the same identity, as far as the cache can see, would show.
  uint64_t opened = 0;
  WatchedStore watched(store_, [&](size_t bytes) {
    opened += bytes;
    return Result<>();
  });
  MinibatchReader again(watched, ExampleFormat::kLibsvm, true, 10, {&files_, "c_"});
  EXPECT_EQ(read_through(again, {"f"}).value(), read);
  EXPECT_EQ(opened, 0u);
}

TEST_F(MinibatchReaderTest, MinibatchesOfAnotherSizeAreMadeAnew) {
  MinibatchReader first = reader(&files_);
  ASSERT_TRUE(read_through(first, {"f"}));
  MinibatchReader second = reader(&files_, 20);
  EXPECT_THAT(read_through(second, {"f"})->sizes, ElementsAre(20, 5));
}

TEST_F(MinibatchReaderTest, NothingIsKeptOfWhatIsNotWantedAgainOrNotReadToItsEnd) {
  MinibatchReader one = reader(&files_);
  ASSERT_TRUE(read_through(one, {"f"}, false));
  ASSERT_TRUE(one.open({"f"}));
  NumberedRows rows;
  ASSERT_TRUE(one.next(rows).value());
  ASSERT_TRUE(one.open({"f"}, false));
  EXPECT_TRUE(files_.list("")->empty());
}

TEST_F(MinibatchReaderTest, WhatIsDamagedIsReadFromTheTextFromThereOn) {
  MinibatchReader first = reader(&files_);
  const ReadThrough read = read_through(first, {"f"}).value();
  const std::string file = only_file();
  const std::string good = files_.get(file);
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    files_.put(file, bad);
    MinibatchReader again = reader(&files_);
    EXPECT_EQ(read_through(again, {"f"}, false).value(), read) << i;
    EXPECT_EQ(again.bad_lines().count, 2u) << i;
  }
}

TEST_F(MinibatchReaderTest, WhatIsDamagedIsMadeAnewForTheNextTime) {
  MinibatchReader first = reader(&files_);
  const ReadThrough read = read_through(first, {"f"}).value();
  const std::string file = only_file();
  const std::string good = files_.get(file);
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    for (const std::string& text : {bad, good.substr(0, i)}) {
      files_.put(file, text);
      MinibatchReader again = reader(&files_);
      EXPECT_EQ(read_through(again, {"f"}).value(), read) << i;
      EXPECT_EQ(files_.get(file), good) << i;
    }
  }
}

TEST_F(MinibatchReaderTest, WhatWasMadeOfAnOlderSourceIsReplacedAndOneLineSaysSo) {
  MinibatchReader first = reader(&files_);
  // As work items have them: with the version of the source.
  const auto parts = [&] {
    const std::string version = store_.stat("f").value().version;
    return std::vector<FilePart>{{.uri = "f", .end = 100, .version = version},
                                 {.uri = "f", .begin = 100, .version = version}};
  };
  for (const FilePart& part : parts()) ASSERT_TRUE(read_through(first, part));
  ASSERT_EQ(files_.list("")->size(), 2u);
  store_.put("f", "7 5:1\n" + store_.get("f"));
  set_log_level(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  MinibatchReader again = reader(&files_);
  for (const FilePart& part : parts()) {
    MinibatchReader plain = reader(nullptr);
    EXPECT_EQ(read_through(again, part).value(), read_through(plain, part).value());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("[^\n]*c_f\\.[0-9a-f]+: f has changed since[^\n]*the cache is made anew\n"));
  EXPECT_EQ(files_.list("")->size(), 2u);
  testing::internal::CaptureStderr();
  MinibatchReader third = reader(&files_);
  for (const FilePart& part : parts()) ASSERT_TRUE(read_through(third, part));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The label of a line without one was 0.
TEST_F(MinibatchReaderTest, WhatWasReadByOlderRulesIsReadAgain) {
  store_.put("vw", "1 |a x\n|a y\n");
  BlockCache older(store_, files_, "c_",
                   fmt::format("{} without groups 10 rows", static_cast<int>(ExampleFormat::kVw)));
  {
    BlockWriter writer = older.create({"vw"}).value();
    RowBlock block;
    for (const float label : {1.0f, 0.0f}) {
      block.keys.push_back(7);
      block.end_row(label);
    }
    NumberedRows rows;
    rows.assign(slice_of(block, 0, 2), std::vector<Key>{7}, std::vector<uint32_t>{0, 0});
    ASSERT_TRUE(writer.write(rows));
    ASSERT_TRUE(writer.commit({}));
    ASSERT_TRUE(older.open({"vw"}).value());
  }
  MinibatchReader now(store_, ExampleFormat::kVw, true, 10, {&files_, "c_"});
  EXPECT_THAT(read_through(now, {"vw"})->labels, ElementsAre(1));
  EXPECT_EQ(now.bad_lines().count, 1u);
  EXPECT_EQ(only_file(), older.file_of({"vw"}));
}

// Neither to begin a file nor to write to it.
class FullStore final : public FileStore {
 public:
  Result<FileInfo> stat(const std::string& uri) override { return not_found("{}", uri); }
  Result<std::vector<FileInfo>> list(const std::string&) override { return std::vector<FileInfo>(); }
  Result<std::vector<std::string>> list_folders(const std::string&) override { return std::vector<std::string>(); }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange) override { return not_found("{}", uri); }
  Result<std::unique_ptr<Output>> create(const std::string&) override {
    class FullOutput final : public Output {
      Result<> write(std::string_view bytes) override {
        return bytes.size() < 100 ? Result<>() : unavailable("the disk is full");
      }
      Result<> commit() override { return unavailable("the disk is full"); }
    };
    return std::make_unique<FullOutput>();
  }
};

TEST_F(MinibatchReaderTest, ADiskThatIsFullCostsOnlyTime) {
  FullStore full;
  MinibatchReader plain = reader(nullptr);
  MinibatchReader kept = reader(&full);
  EXPECT_EQ(read_through(kept, {"f"}).value(), read_through(plain, {"f"}).value());
  EXPECT_EQ(read_through(kept, {"f"}).value(), read_through(plain, {"f"}).value());
}

}  // namespace
}  // namespace pscloud
