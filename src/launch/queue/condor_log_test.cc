#include "launch/queue/condor_log.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

// As HTCondor 23.9 writes it.
constexpr const char* kLog =
    R"(000 (012.000.000) 2026-11-17 09:20:00 Job submitted from host: <10.79.0.1:9618?addrs=10.79.0.1-9618>
...
040 (012.000.000) 2026-11-17 09:20:01 Started transferring input files
	Transferring to host: <10.79.0.2:9618>
...
001 (012.001.000) 2026-11-17 09:20:02 Job executing on host: <10.79.0.2:9618?addrs=10.79.0.2-9618>
	SlotName: slot1_1@host2
	CondorScratchDir = "/var/lib/condor/execute/dir_77"
...
001 (012.000.000) 2026-11-17 09:20:02 Job executing on host: <10.79.0.3:9618?addrs=10.79.0.3-9618>
...
005 (012.000.000) 2026-11-17 09:20:10 Job terminated.
	(1) Normal termination (return value 3)
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
...
012 (012.002.000) 2026-11-17 09:20:11 Job was held.
	Transfer input files failure: no such file
	Code 13 Subcode 2
...
009 (012.001.000) 2026-11-17 09:20:12 Job was aborted.
	via condor_rm (by user psuser)
...
)";

TEST(CondorLog, TellsWhatHappenedToWhom) {
  CondorLog log;
  const auto events = log.read(kLog);
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0].kind, CondorEvent::Kind::kSubmitted);
  EXPECT_EQ(events[1].kind, CondorEvent::Kind::kRunning);
  EXPECT_EQ(events[1].process, 1);
  EXPECT_EQ(events[1].text, "host2");
  EXPECT_EQ(events[2].text, "10.79.0.3");
  EXPECT_EQ(events[3].kind, CondorEvent::Kind::kEnded);
  EXPECT_EQ(events[4].kind, CondorEvent::Kind::kHeld);
  EXPECT_EQ(events[4].text, "Transfer input files failure: no such file");
  EXPECT_EQ(events[5].kind, CondorEvent::Kind::kRemoved);
  EXPECT_EQ(events[5].text, "via condor_rm (by user psuser)");
}

TEST(CondorLog, AnEventCountsWhenItIsWhole) {
  const std::string text = kLog;
  const auto all = CondorLog().read(text);
  for (size_t cut = 0; cut <= text.size(); cut += 7) {
    CondorLog log;
    auto events = log.read(std::string_view(text).substr(0, cut));
    for (auto& event : log.read(std::string_view(text).substr(cut))) events.push_back(event);
    ASSERT_EQ(events.size(), all.size()) << "cut at " << cut;
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(events[i].text, all[i].text) << "cut at " << cut;
  }
}

TEST(CondorLog, NoiseIsNoEvent) {
  CondorLog log;
  EXPECT_TRUE(log.read("...\n\n...\n001\n...\n001 (1.2\n...\nxyz (1.2.3) hello\n...\n").empty());
}

}  // namespace
}  // namespace pscloud
