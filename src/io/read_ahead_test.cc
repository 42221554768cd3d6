#include "io/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace pscloud {
namespace {

std::string made_up_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 24);
  return bytes;
}

struct CountedFetch {
  std::string file;
  std::atomic<uint64_t> asked_up_to = 0;
  std::atomic<int> fetches = 0;

  ReadAheadInput::Fetch fetch() {
    return [this](uint64_t begin, uint64_t end, const std::stop_token&) -> Result<std::string> {
      ++fetches;
      for (uint64_t before = asked_up_to; before < end && !asked_up_to.compare_exchange_weak(before, end);) continue;
      return file.substr(begin, end - begin);
    };
  }
};

TEST(ReadAhead, GivesEveryByteInOrder) {
  CountedFetch source{.file = made_up_bytes(30'000'000)};
  for (const uint64_t begin : {uint64_t{0}, uint64_t{1234567}, uint64_t{source.file.size()}}) {
    ReadAheadInput input(source.file.substr(begin, 1000), {.begin = begin, .end = source.file.size()}, source.fetch());
    EXPECT_EQ(read_all(input, 1 << 30).value(), source.file.substr(begin));
  }
}

TEST(ReadAhead, FetchesNothingBeforeTheFirstBlockIsUsedUp) {
  CountedFetch source{.file = made_up_bytes(1'000'000)};
  ReadAheadInput input(source.file.substr(0, 1000), {.end = source.file.size()}, source.fetch());
  std::vector<char> out(1000);
  EXPECT_EQ(input.read(out).value(), 1000u);
  EXPECT_EQ(source.fetches, 0);
}

TEST(ReadAhead, StaysWithinWhatIsExpectedUnlessMoreIsRead) {
  CountedFetch source{.file = made_up_bytes(20'000'000)};
  ReadAheadInput input(source.file.substr(0, 1000), {.end = source.file.size(), .ahead_end = 5'000'000},
                       source.fetch());
  std::string all(4'999'000, '\0');
  for (size_t at = 0; at < all.size();) at += input.read(std::span(all).subspan(at)).value();
  EXPECT_EQ(all, source.file.substr(0, all.size()));
  EXPECT_LE(source.asked_up_to, 5'000'000u);
  EXPECT_EQ(read_all(input, 1 << 30).value(), source.file.substr(all.size()));
}

TEST(ReadAhead, StaysWithinTheBytesThatItMayHold) {
  CountedFetch source{.file = made_up_bytes(5'000'000)};
  constexpr uint64_t kAhead = 1'000'000;
  ReadAheadInput input("", {.end = source.file.size(), .ahead_bytes_max = kAhead}, source.fetch());
  std::string all(source.file.size(), '\0');
  for (size_t at = 0; at < all.size();) {
    const size_t count = input.read(std::span(all).subspan(at, std::min<size_t>(1000, all.size() - at))).value();
    ASSERT_GT(count, 0u);
    at += count;
    // One block of the four is in use.
    ASSERT_LE(source.asked_up_to, at + kAhead + kAhead / ReadAheadInput::kBlocksAhead);
  }
  EXPECT_EQ(all, source.file);
}

TEST(ReadAhead, AFailureComesWhereItHappened) {
  const ReadAheadInput::Fetch fetch = [](uint64_t begin, uint64_t end, const std::stop_token&) -> Result<std::string> {
    if (end > 2'000'000) return unavailable("gone");
    return std::string(end - begin, 'x');
  };
  ReadAheadInput input("", {.end = 10'000'000}, fetch);
  const auto all = read_all(input, 1 << 30);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message, "gone");
}

TEST(ReadAhead, EndsThoughFetchesAreUnderWay) {
  std::atomic<int> stopped = 0;
  {
    const ReadAheadInput::Fetch fetch = [&](uint64_t begin, uint64_t end,
                                            const std::stop_token& stop) -> Result<std::string> {
      while (begin > 0 && !stop.stop_requested()) std::this_thread::yield();
      stopped += begin > 0 ? 1 : 0;
      return std::string(end - begin, 'x');
    };
    ReadAheadInput input("", {.end = 100'000'000}, fetch);
    std::vector<char> out(10);
    EXPECT_EQ(input.read(out).value(), 10u);
  }
  EXPECT_EQ(stopped, static_cast<int>(ReadAheadInput::kBlocksAhead));
}

}  // namespace
}  // namespace pscloud
