#include "pscloud/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "engine/node_variables.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

Environment of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

NodeOptions options_of(std::map<std::string, std::string> variables) {
  NodeOptions options;
  const auto applied = apply_environment(of(std::move(variables)), options);
  EXPECT_TRUE(applied) << applied.error().message;
  return options;
}

std::string error_of(std::map<std::string, std::string> variables) {
  NodeOptions options;
  const auto applied = apply_environment(of(std::move(variables)), options);
  if (applied) return "no error";
  EXPECT_EQ(applied.error().code, Code::kInvalid);
  return applied.error().message;
}

TEST(Environment, NothingSetChangesNothing) {
  const NodeOptions options = options_of({});
  EXPECT_EQ(options.role, Role::kWorker);
  EXPECT_EQ(options.scheduler, "");
  EXPECT_EQ(options.listen, "127.0.0.1:0");
  EXPECT_EQ(options.rank, -1);
}

TEST(Environment, EveryOptionHasItsVariable) {
  const NodeOptions options = options_of({{"PSCLOUD_ROLE", "server"},
                                          {"PSCLOUD_JOB", "ctr"},
                                          {"PSCLOUD_SCHEDULER", "10.0.0.1:4000"},
                                          {"PSCLOUD_LISTEN", "[::1]:0"},
                                          {"PSCLOUD_ADVERTISE", "node7"},
                                          {"PSCLOUD_HTTP", "127.0.0.1:0"},
                                          {"PSCLOUD_TLS_DIR", "/tls"},
                                          {"PSCLOUD_INSECURE", "1"},
                                          {"PSCLOUD_RANK", "3"},
                                          {"PSCLOUD_SERVERS", "4"},
                                          {"PSCLOUD_WORKERS", "5"},
                                          {"PSCLOUD_WORKERS_MIN", "2"},
                                          {"PSCLOUD_WORKER_DEATH", "fail"},
                                          {"PSCLOUD_RESTART_WAIT_MS", "0"},
                                          {"PSCLOUD_OWNERS", "6"},
                                          {"PSCLOUD_MEMORY_MAX", "2G"},
                                          {"PSCLOUD_QUEUE_BYTES_MAX", "64k"},
                                          {"PSCLOUD_REQUEST_TIMEOUT_MS", "7"},
                                          {"PSCLOUD_JOIN_TIMEOUT_MS", "8"},
                                          {"PSCLOUD_HEARTBEAT_MS", "9"},
                                          {"PSCLOUD_DEATH_TIMEOUT_MS", "10"},
                                          {"PSCLOUD_STOP_TIMEOUT_MS", "11"}});
  EXPECT_EQ(options.role, Role::kServer);
  EXPECT_EQ(options.job, "ctr");
  EXPECT_EQ(options.scheduler, "10.0.0.1:4000");
  EXPECT_EQ(options.listen, "[::1]:0");
  EXPECT_EQ(options.advertise, "node7");
  EXPECT_EQ(options.http, "127.0.0.1:0");
  EXPECT_EQ(options.tls_dir, "/tls");
  EXPECT_TRUE(options.insecure);
  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.servers, 4);
  EXPECT_EQ(options.workers, 5);
  EXPECT_EQ(options.workers_min, 2);
  EXPECT_EQ(options.worker_death, WorkerDeath::kFail);
  EXPECT_EQ(options.restart_wait_ms, 0);
  EXPECT_EQ(options.owners, 6);
  EXPECT_EQ(options.memory_max, uint64_t{2} << 30);
  EXPECT_EQ(options.queue_bytes_max, 64 << 10);
  EXPECT_EQ(options.request_timeout_ms, 7);
  EXPECT_EQ(options.join_timeout_ms, 8);
  EXPECT_EQ(options.heartbeat_ms, 9);
  EXPECT_EQ(options.death_timeout_ms, 10);
  EXPECT_EQ(options.stop_timeout_ms, 11);
}

TEST(Environment, PsLiteNamesAreUnderstood) {
  const NodeOptions options = options_of({{"DMLC_ROLE", "worker"},
                                          {"DMLC_PS_ROOT_URI", "10.0.0.1"},
                                          {"DMLC_PS_ROOT_PORT", "9091"},
                                          {"DMLC_NUM_SERVER", "2"},
                                          {"DMLC_NUM_WORKER", "3"},
                                          {"DMLC_NODE_HOST", "10.0.0.7"},
                                          {"DMLC_WORKER_ID", "1"},
                                          {"PORT", "4001"}});
  EXPECT_EQ(options.role, Role::kWorker);
  EXPECT_EQ(options.scheduler, "10.0.0.1:9091");
  EXPECT_EQ(options.servers, 2);
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.advertise, "10.0.0.7");
  EXPECT_EQ(options.rank, 1);
  EXPECT_EQ(options.listen, "127.0.0.1:4001");
}

TEST(Environment, AnIpv6RootGetsItsBrackets) {
  EXPECT_EQ(options_of({{"DMLC_PS_ROOT_URI", "fd00::1"}, {"DMLC_PS_ROOT_PORT", "9091"}}).scheduler, "[fd00::1]:9091");
}

TEST(Environment, OurNamesWinAndWhatTheyReplaceIsNotRead) {
  const NodeOptions options = options_of({{"PSCLOUD_ROLE", "server"},
                                          {"DMLC_ROLE", "nonsense"},
                                          {"PSCLOUD_SCHEDULER", "10.0.0.2:1"},
                                          {"DMLC_PS_ROOT_URI", "10.0.0.1"},
                                          {"PSCLOUD_RANK", "0"},
                                          {"DMLC_SERVER_ID", "x"},
                                          {"PSCLOUD_LISTEN", "127.0.0.1:5"},
                                          {"PORT", "x"}});
  EXPECT_EQ(options.role, Role::kServer);
  EXPECT_EQ(options.scheduler, "10.0.0.2:1");
  EXPECT_EQ(options.rank, 0);
  EXPECT_EQ(options.listen, "127.0.0.1:5");
}

TEST(Environment, ANodeTakesTheRankOfItsOwnRole) {
  const std::map<std::string, std::string> ids = {{"DMLC_WORKER_ID", "1"}, {"DMLC_SERVER_ID", "2"}};
  const auto rank_of = [&](const std::string& role) {
    auto variables = ids;
    variables["DMLC_ROLE"] = role;
    return options_of(variables).rank;
  };
  EXPECT_EQ(rank_of("worker"), 1);
  EXPECT_EQ(rank_of("server"), 2);
  EXPECT_EQ(rank_of("scheduler"), -1);
  EXPECT_EQ(options_of({{"DMLC_RANK", "5"}, {"DMLC_WORKER_ID", "1"}}).rank, 5);
}

TEST(Environment, PortAloneIsSomebodyElses) { EXPECT_EQ(options_of({{"PORT", "8080"}}).listen, "127.0.0.1:0"); }

TEST(Environment, AnEmptyValueIsNone) {
  EXPECT_EQ(options_of({{"PSCLOUD_SERVERS", ""}, {"DMLC_NUM_SERVER", "2"}}).servers, 2);
}

TEST(Environment, AWrongValueNamesVariableValueAndWhatIsAllowed) {
  EXPECT_EQ(error_of({{"PSCLOUD_ROLE", "boss"}}), "PSCLOUD_ROLE is \"boss\": it must be scheduler, server or worker");
  EXPECT_EQ(error_of({{"DMLC_NUM_WORKER", "0"}}), "DMLC_NUM_WORKER is \"0\": it must be a number from 1 to 16000");
  EXPECT_EQ(error_of({{"PSCLOUD_INSECURE", "yes"}}), "PSCLOUD_INSECURE is \"yes\": it must be 1 or 0");
  EXPECT_EQ(error_of({{"PSCLOUD_WORKER_DEATH", "ignore"}}),
            "PSCLOUD_WORKER_DEATH is \"ignore\": it must be continue or fail");
  EXPECT_THAT(error_of({{"PSCLOUD_SCHEDULER", "4000"}}), HasSubstr("PSCLOUD_SCHEDULER is \"4000\""));
  EXPECT_THAT(error_of({{"DMLC_PS_ROOT_URI", "h"}, {"DMLC_PS_ROOT_PORT", "0"}}), HasSubstr("DMLC_PS_ROOT_PORT"));
  EXPECT_THAT(error_of({{"DMLC_PS_ROOT_URI", "a b"}, {"DMLC_PS_ROOT_PORT", "1"}}), HasSubstr("DMLC_PS_ROOT_URI"));
  EXPECT_THAT(error_of({{"DMLC_PS_ROOT_PORT", "1"}}), HasSubstr("DMLC_PS_ROOT_URI is not"));
  EXPECT_THAT(error_of({{"DMLC_WORKER_ID", "-2"}}), HasSubstr("DMLC_WORKER_ID is \"-2\""));
}

TEST(Environment, NumbersAreWholeAndInRange) {
  for (const char* value : {"x", "1x", " 1", "1.5", "-1", "99999999999999999999"}) {
    EXPECT_THAT(error_of({{"PSCLOUD_SERVERS", value}}), HasSubstr("PSCLOUD_SERVERS")) << value;
  }
  for (const char* value : {"0", "G", "1GB", "-1", "1e9", "16777216T", "18446744073709551616"}) {
    EXPECT_THAT(error_of({{"PSCLOUD_MEMORY_MAX", value}}), HasSubstr("PSCLOUD_MEMORY_MAX")) << value;
  }
  EXPECT_EQ(options_of({{"PSCLOUD_MEMORY_MAX", "16777215T"}}).memory_max, uint64_t{16777215} << 40);
  EXPECT_EQ(options_of({{"PSCLOUD_MEMORY_MAX", "18446744073709551615"}}).memory_max, UINT64_MAX);
}

TEST(Environment, ThatOfTheProcessIsRead) {
  ::setenv("PSCLOUD_TEST_VARIABLE", "x", 1);
  EXPECT_EQ(process_environment()("PSCLOUD_TEST_VARIABLE"), "x");
  ::unsetenv("PSCLOUD_TEST_VARIABLE");
  EXPECT_EQ(process_environment()("PSCLOUD_TEST_VARIABLE"), std::nullopt);
}

TEST(NodeVariables, AFieldNamesItsVariableAndFlag) {
  NodeVariable variable{};
  variable.field = "heartbeat_ms";
  EXPECT_EQ(variable.variable(), "PSCLOUD_HEARTBEAT_MS");
  EXPECT_EQ(variable.flag(), "--heartbeat-ms");
}

TEST(NodeVariables, DefaultsAreThoseOfNodeOptions) {
  const NodeOptions fresh;
  NodeOptions options;
  options.role = Role::kScheduler;
  options.job = options.listen = options.scheduler = "other";
  options.insecure = true;
  options.rank = options.servers = options.workers = options.workers_min = options.restart_wait_ms = options.owners =
      77;
  options.request_timeout_ms = options.join_timeout_ms = options.heartbeat_ms = 77;
  options.death_timeout_ms = options.stop_timeout_ms = 77;
  options.worker_death = WorkerDeath::kFail;
  options.memory_max = options.queue_bytes_max = 77;
  for (const NodeVariable& variable : node_variables()) {
    const std::string value = variable.default_value;
    EXPECT_TRUE(value.empty() || variable.set(value, options)) << variable.field;
  }
  const auto all = [](const NodeOptions& o) {
    return std::tuple(o.role, o.job, o.listen, o.insecure, o.rank, o.servers, o.workers, o.workers_min, o.worker_death,
                      o.restart_wait_ms, o.owners, o.memory_max, o.queue_bytes_max, o.request_timeout_ms,
                      o.join_timeout_ms, o.heartbeat_ms, o.death_timeout_ms, o.stop_timeout_ms);
  };
  EXPECT_EQ(all(options), all(fresh));
}

TEST(NodeVariables, ThePageListsEveryOne) {
  std::ifstream file(PSCLOUD_SOURCE_DIR "/docs/node-environment.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const NodeVariable& variable : node_variables()) {
    const size_t row = page.str().find("\n| `" + variable.variable() + "` |");
    ASSERT_NE(row, std::string::npos) << variable.field;
    const std::string line = page.str().substr(row, page.str().find('\n', row + 1) - row);
    EXPECT_THAT(line, HasSubstr(*variable.default_value == '\0' ? "" : fmt::format("| {} |", variable.default_value)));
    EXPECT_THAT(page.str(), HasSubstr(variable.dmlc == nullptr ? "" : variable.dmlc));
  }
}

}  // namespace
}  // namespace pscloud
