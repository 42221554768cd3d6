#include "cli/train/dmlc_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "learn/config.pb.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

// What a command line becomes, as one line: environment, words, and what is ignored in brackets; or what is wrong.
std::string ours_for(const std::vector<std::string>& words, std::string_view block = "async_sgd",
                     const std::map<std::string, std::string>& variables = {}) {
  const auto flags = parse_dmlc_flags(words);
  if (!flags) return flags.error().message;
  PS::LM::Config config;
  if (block == "darlin") config.mutable_darlin();
  if (block == "async_sgd") config.mutable_async_sgd();
  if (block != "nothing") config.mutable_validation_data();
  const Environment environment = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  const bool has_config = !flags->app_file.empty() || !flags->app_conf.empty();
  const auto ours = translate(*flags, has_config ? &config : nullptr, environment);
  if (!ours) return ours.error().message;
  std::string line;
  for (const auto& [name, value] : ours->environment) line += fmt::format("{}={} ", name, value);
  line += fmt::format("{}", fmt::join(ours->words, " "));
  if (!ours->ignored.empty()) line += fmt::format(" [{}]", fmt::join(ours->ignored, " "));
  return line;
}

TEST(DmlcFlags, FlagsAreWrittenInAllWaysOfGflags) {
  const std::string ours = "train x.conf --servers 2 --workers 4";
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-num_servers", "2", "-num_workers", "4"}), ours);
  EXPECT_EQ(ours_for({"-app_file=x.conf", "--num_servers=2", "--num_workers", "4"}), ours);
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-nolocal", "-local=true", "-logtostderr"}),
            "train x.conf [-local -local -logtostderr]");
  EXPECT_TRUE(begins_as_dmlc(std::vector<std::string>{"--num_servers=2"}));
  EXPECT_TRUE(begins_as_dmlc(std::vector<std::string>{"-logtostderr"}));
  for (const char* word : {"train", "--help", "-h", "--version", "--app-file"}) {
    EXPECT_FALSE(begins_as_dmlc(std::vector<std::string>{word})) << word;
  }
}

TEST(DmlcFlags, TheConfigChoosesWhatIsDone) {
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-line_limit", "7"}, "darlin"),
            "train x.conf --set training_data.max_num_lines_per_file=7");
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-line_limit", "7"}), "train x.conf [-line_limit]");
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-num_servers", "1", "-num_workers", "1"}, "validation"),
            "evaluate x.conf");
  EXPECT_THAT(ours_for({"-app_file", "x.conf"}, "nothing"), HasSubstr("x.conf: it has neither darlin nor async_sgd"));
}

TEST(DmlcFlags, WithoutServersWorkersAreThreads) {
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-num_workers", "3"}), "train x.conf --threads 3");
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-num_servers", "2", "-num_threads", "3"}),
            "train x.conf --servers 2 --workers 1 --threads 3");
}

TEST(DmlcFlags, TextIsAppended) {
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-app_conf", "a: 1"}), "train x.conf --append a: 1");
  EXPECT_EQ(ours_for({"-app_conf", "a: 1"}), "train /dev/null --append a: 1");
}

TEST(DmlcFlags, RolesBecomeNodesAndWorkers) {
  const std::string scheduler = "role:SCHEDULER,hostname:'10.0.0.1',port:8001,id:'H'";
  EXPECT_EQ(ours_for({"-my_node", scheduler, "-scheduler", scheduler, "-num_servers", "2", "-num_workers", "4",
                      "-app_file", "x.conf"}),
            "node --role scheduler --scheduler 10.0.0.1:8001 --servers 2 --workers 4");
  EXPECT_EQ(ours_for({"-my_node", scheduler, "-app_file", "x.conf"}, "validation"), "evaluate x.conf");
  EXPECT_EQ(ours_for({"-my_node", "role:SERVER,hostname:\"10.0.0.2\",port:8002", "-scheduler", scheduler}),
            "node --role server --scheduler 10.0.0.1:8001 --listen 10.0.0.2:8002");
  EXPECT_EQ(ours_for({"-my_node", "role: SERVER", "-bind_to", "8003"}),
            "node --role server --scheduler 127.0.0.1:8000 --listen 127.0.0.1:8003");
  const std::string worker = "role:WORKER,id:'W0'";
  EXPECT_EQ(ours_for({"-my_node", worker, "-scheduler", scheduler, "-app_file", "x.conf", "-num_threads", "2"}),
            "PSCLOUD_ROLE=worker PSCLOUD_SCHEDULER=10.0.0.1:8001 train x.conf --threads 1 [-num_threads]");
  EXPECT_THAT(ours_for({"-my_node", worker}), HasSubstr("workers read the config themselves"));
}

TEST(DmlcFlags, TheEnvironmentMaySayTheRole) {
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-num_servers", "2"}, "async_sgd", {{"DMLC_ROLE", "scheduler"}}),
            "node --servers 2");
  EXPECT_EQ(ours_for({"-logtostderr"}, "async_sgd", {{"DMLC_ROLE", "server"}}), "node [-logtostderr]");
  EXPECT_EQ(ours_for({"-app_file", "x.conf"}, "async_sgd", {{"DMLC_ROLE", "worker"}}), "train x.conf --threads 1");
}

TEST(DmlcFlags, WhatWouldChangeTheModelIsRefused) {
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-hash_kernel", "100"}),
            "-hash_kernel is not supported: keys are taken as they are");
  EXPECT_EQ(ours_for({"-app_file", "x.conf", "-hash_kernel", "0", "-noshuffle_fea_id"}), "train x.conf");
  EXPECT_THAT(ours_for({"-shuffle_fea_id"}), HasSubstr("-shuffle_fea_id is not supported"));
}

TEST(DmlcFlags, MistakesAreNamed) {
  EXPECT_EQ(ours_for({"-app_fiel", "x.conf"}), "unknown flag '-app_fiel'; did you mean '-app_file'?");
  EXPECT_EQ(ours_for({"-app_file"}), "-app_file needs a value");
  EXPECT_EQ(ours_for({"-num_servers", "2"}), "-app_file is missing");
  EXPECT_EQ(ours_for({"-local", "train"}), "'train' is one word too many");
  EXPECT_EQ(ours_for({"-num_servers", "many"}), "-num_servers is \"many\": it must be a number from 0 to 256");
  EXPECT_EQ(ours_for({"-my_node", "role:KING"}), "-my_node: no role KING: it must be SCHEDULER, SERVER or WORKER");
  EXPECT_THAT(ours_for({"-my_node", "hostname:'a"}), HasSubstr("a quote is missing"));
  EXPECT_THAT(ours_for({"-my_node", "port:80"}), HasSubstr("has no role"));
  EXPECT_THAT(ours_for({"-my_node", "role:SERVER,port:80", "-bind_to", "90"}), HasSubstr("told port 80"));
}

}  // namespace
}  // namespace pscloud
