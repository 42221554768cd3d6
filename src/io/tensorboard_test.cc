#include "io/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "io/crc32c.h"

namespace pscloud {
namespace {

// A decoder that shares nothing with the writer but crc32c, which has tests of its own.

class Input {
 public:
  explicit Input(std::string bytes) : bytes_(std::move(bytes)) {}
  bool empty() const { return at_ == bytes_.size(); }
  std::string take(size_t size) {
    EXPECT_LE(size, bytes_.size() - at_);
    std::string taken = bytes_.substr(at_, size);
    at_ += taken.size();
    return taken;
  }
  template <class T>
  T fixed() {
    T value{};
    const std::string raw = take(sizeof value);
    std::memcpy(&value, raw.data(), raw.size());
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(fixed<char>());
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

struct Value {
  std::string tag;
  float simple_value = 0;
  bool operator==(const Value&) const = default;
};
struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::vector<Value> values;
};

Value decode_value(Input input) {
  Value value;
  while (!input.empty()) {
    switch (const uint64_t tag = input.varint(); tag) {
      case 1 << 3 | 2: value.tag = input.take(input.varint()); break;
      case 2 << 3 | 5: value.simple_value = input.fixed<float>(); break;
      default: ADD_FAILURE() << "unknown tag " << tag; return value;
    }
  }
  return value;
}

Event decode_event(Input input) {
  Event event;
  while (!input.empty()) {
    switch (const uint64_t tag = input.varint(); tag) {
      case 1 << 3 | 1: event.wall_time = input.fixed<double>(); break;
      case 2 << 3 | 0: event.step = static_cast<int64_t>(input.varint()); break;
      case 3 << 3 | 2: event.file_version = input.take(input.varint()); break;
      case 5 << 3 | 2: {
        Input summary(input.take(input.varint()));
        while (!summary.empty()) {
          EXPECT_EQ(summary.varint(), 1u << 3 | 2);
          event.values.push_back(decode_value(Input(summary.take(summary.varint()))));
        }
        break;
      }
      default: ADD_FAILURE() << "unknown tag " << tag; return event;
    }
  }
  return event;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8;
  return rotated >> 17 | rotated << 15;
}

std::vector<Event> read_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  Input input(all.str());
  std::vector<Event> events;
  while (!input.empty()) {
    const std::string length = input.take(8);
    EXPECT_EQ(unmask(input.fixed<uint32_t>()), crc32c(bytes_of(length)));
    const std::string event = input.take(Input(length).fixed<uint64_t>());
    EXPECT_EQ(unmask(input.fixed<uint32_t>()), crc32c(bytes_of(event)));
    events.push_back(decode_event(Input(event)));
  }
  return events;
}

class TensorBoard : public testing::Test {
 protected:
  TensorBoard() { std::filesystem::remove_all(folder_); }
  ~TensorBoard() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "/tensorboard_test_" + std::to_string(::getpid());
};

TEST_F(TensorBoard, AFileBeginsWithItsVersion) {
  const auto writer = TensorBoardWriter::create(folder_ + "/deep/er", 1500000000.5);
  ASSERT_TRUE(writer);
  const std::vector<Event> events = read_events(writer->path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].wall_time, 1500000000.5);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[0].values.empty());
}

TEST_F(TensorBoard, StepsAreReadBackAsTheyWereWritten) {
  auto writer = TensorBoardWriter::create(folder_, 1500000000);
  ASSERT_TRUE(writer);
  // A tag of 200 bytes makes lengths of two bytes in three nested messages.
  const std::string long_tag(200, 'x');
  const std::vector<TensorBoardScalar> both{{"rate", 1234.5}, {long_tag, -0.25}};
  ASSERT_TRUE(writer->write(1500000001.25, 7, both));
  ASSERT_TRUE(writer->write(1500000002, int64_t{1} << 40, {}));
  const std::vector<Event> events = read_events(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].wall_time, 1500000001.25);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_EQ(events[1].values, (std::vector<Value>{{"rate", 1234.5f}, {long_tag, -0.25f}}));
  EXPECT_EQ(events[2].step, int64_t{1} << 40);
}

TEST_F(TensorBoard, TwoFilesOfOneSecondAreTwo) {
  const auto one = TensorBoardWriter::create(folder_, 1500000000);
  const auto two = TensorBoardWriter::create(folder_, 1500000000);
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->path(), two->path());
  EXPECT_NE(one->path().find("/events.out.tfevents.1500000000."), std::string::npos);
}

TEST_F(TensorBoard, AFolderThatCannotBeMadeIsNamed) {
  const auto writer = TensorBoardWriter::create("/dev/null/events", 1500000000);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kInvalid);
  EXPECT_NE(writer.error().message.find("/dev/null/events"), std::string::npos);
}

TEST_F(TensorBoard, AFolderElsewhereIsRefused) {
  EXPECT_EQ(TensorBoardWriter::create("s3://bucket/events", 0).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace pscloud
