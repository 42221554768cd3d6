#include "launch/swarm/swarm_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TaskId kSwarmWorker{TaskRole::kWorker, 0};

std::string frame(int pipe, const std::string& text) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(pipe);
  for (size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(text.size() >> (24 - 8 * i));
  return bytes + text;
}

std::string at(int second, const std::string& text) {
  return "2026-11-17T09:19:" + std::to_string(10 + second) + ".547457094Z " + text;
}

std::vector<std::string> log_lines(const std::vector<TaskEvent>& events) {
  std::vector<std::string> lines;
  for (const TaskEvent& event : events) lines.push_back((event.is_stderr ? "E " : "O ") + event.text);
  return lines;
}

TEST(SwarmLog, FramesCutAnywhereGiveLines) {
  const std::string bytes = frame(1, at(0, "one\n")) + frame(2, at(1, "wrong\n")) + frame(1, at(2, "half ")) +
                            frame(1, at(2, "and half\n")) + frame(1, at(3, "\n")) + frame(1, at(4, "last"));
  for (size_t piece : {size_t{1}, size_t{7}, bytes.size()}) {
    SwarmLog log(kSwarmWorker);
    std::vector<TaskEvent> events;
    for (size_t i = 0; i < bytes.size(); i += piece) {
      ASSERT_TRUE(log.take(std::string_view(bytes).substr(i, piece), events));
    }
    log.end(events);
    EXPECT_THAT(log_lines(events), ElementsAre("O one", "E wrong", "O half and half", "O ", "O last"));
  }
}

TEST(SwarmLog, WhatIsSentAgainCountsOnce) {
  SwarmLog log(kSwarmWorker);
  std::vector<TaskEvent> events;
  EXPECT_EQ(log.since(), "0");
  ASSERT_TRUE(log.take(frame(1, at(0, "a\n")) + frame(1, at(5, "b\n")) + frame(1, at(5, "c\n")), events));
  // The clock of stderr may be behind.
  ASSERT_TRUE(log.take(frame(2, at(4, "x\n")), events));
  EXPECT_EQ(log.since(), "1794907150");  // date -d 2026-11-17T09:19:10Z +%s
  events.clear();
  log.begin_stream();
  ASSERT_TRUE(log.take(frame(1, at(5, "b\n")) + frame(1, at(5, "c\n")) + frame(1, at(5, "d\n")) +
                           frame(2, at(4, "x\n")) + frame(2, at(4, "y\n")) + frame(1, at(6, "e\n")),
                       events));
  EXPECT_THAT(log_lines(events), ElementsAre("O d", "E y", "O e"));
}

TEST(SwarmLog, OtherBytesAreRefused) {
  SwarmLog log(kSwarmWorker);
  std::vector<TaskEvent> events;
  EXPECT_EQ(log.take("{\"message\":\"no\"}", events).error().code, Code::kCorrupt);
  SwarmLog long_log(kSwarmWorker);
  EXPECT_FALSE(long_log.take(std::string("\1\0\0\0\x7f\0\0\0", 8), events));
  EXPECT_THAT(events, IsEmpty());
}

}  // namespace
}  // namespace pscloud
