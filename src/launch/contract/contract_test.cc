#include "launch/contract/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;

constexpr TaskId kScheduler0{TaskRole::kScheduler, 0};
constexpr TaskId kServer0{TaskRole::kServer, 0};
constexpr TaskId kServer1{TaskRole::kServer, 1};
constexpr TaskId kChief0{TaskRole::kChief, 0};
constexpr TaskId kWorker0{TaskRole::kWorker, 0};
constexpr TaskId kWorker1{TaskRole::kWorker, 1};
constexpr TaskId kWorker2{TaskRole::kWorker, 2};
constexpr TaskId kEvaluator0{TaskRole::kEvaluator, 0};

// Two on the host "a", and one on each of the others.
ClusterView view_of(std::vector<TaskId> tasks) {
  ClusterView view;
  view.job = "j7";
  int number = 0;
  std::ranges::sort(tasks);
  for (const TaskId& id : tasks) {
    const std::string host(1, static_cast<char>(number < 2 ? 'a' : 'a' + number));
    view.tasks.push_back({id, {host, static_cast<uint16_t>(20000 + number)}});
    ++number;
  }
  return view;
}

std::map<std::string, std::string> variables_of(Framework framework, const ClusterView& view, TaskId self) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : contract_of(framework, view, self, "clicks").variables) {
    EXPECT_TRUE(found.emplace(name, value).second) << name << " is there twice";
  }
  return found;
}

std::string tf_config_of(const ClusterView& view, TaskId self) {
  return variables_of(Framework::kTensorflow, view, self)["TF_CONFIG"];
}

TEST(Contract, EveryTaskKnowsItsRunAndItsNameAndPrintsAtOnce) {
  const ClusterView view = view_of({kScheduler0, kServer0, kWorker0});
  for (const Framework framework : {Framework::kPscloud, Framework::kDmlc, Framework::kPoseidon}) {
    EXPECT_THAT(
        variables_of(framework, view, kWorker0),
        IsSupersetOf({Pair("PSCLOUD_RUN", "clicks"), Pair("PSCLOUD_TASK", "worker-0"), Pair("PYTHONUNBUFFERED", "1")}));
  }
}

TEST(Contract, OurOwnNodesFindTheSchedulerAndListenWhereTheyWereAnnounced) {
  const ClusterView view = view_of({kScheduler0, kServer0, kServer1, kWorker0, kWorker1});
  EXPECT_THAT(
      variables_of(Framework::kPscloud, view, kServer1),
      ElementsAre(Pair("PSCLOUD_JOB", "j7"), Pair("PSCLOUD_LISTEN", "c:20002"), Pair("PSCLOUD_RANK", "1"),
                  Pair("PSCLOUD_ROLE", "server"), Pair("PSCLOUD_RUN", "clicks"), Pair("PSCLOUD_SCHEDULER", "a:20000"),
                  Pair("PSCLOUD_SERVERS", "2"), Pair("PSCLOUD_SERVER_ADDRESSES", "a:20001,c:20002"),
                  Pair("PSCLOUD_TASK", "server-1"), Pair("PSCLOUD_WORKERS", "2"),
                  Pair("PSCLOUD_WORKER_ADDRESSES", "d:20003,e:20004"), Pair("PYTHONUNBUFFERED", "1")));
  EXPECT_THAT(variables_of(Framework::kPscloud, view, kScheduler0), Not(Contains(Key("PSCLOUD_RANK"))));
}

TEST(Contract, AListThatIsTooLongForAVariableIsLeftOut) {
  ClusterView view = view_of({kScheduler0, kServer0});
  for (int i = 0; i < 16000; ++i) view.tasks.push_back({{TaskRole::kWorker, i}, {"10.11.12.13", 20000}});
  const auto variables = variables_of(Framework::kPscloud, view, kWorker0);
  EXPECT_THAT(variables, Not(Contains(Key("PSCLOUD_WORKER_ADDRESSES"))));
  EXPECT_THAT(variables, IsSupersetOf({Pair("PSCLOUD_WORKERS", "16000"), Pair("PSCLOUD_SERVER_ADDRESSES", "a:20001")}));
}

TEST(Contract, TensorflowReadsClusterAndTask) {
  const ClusterView view = view_of({kServer0, kChief0, kWorker0, kWorker1});
  EXPECT_EQ(tf_config_of(view, kChief0),
            R"({"cluster":{"chief":["a:20001"],"worker":["c:20002","d:20003"],"ps":["a:20000"]},)"
            R"("task":{"type":"chief","index":0}})");
  EXPECT_THAT(tf_config_of(view, kWorker1), HasSubstr(R"("task":{"type":"worker","index":1})"));
  EXPECT_THAT(tf_config_of(view, kServer0), HasSubstr(R"("task":{"type":"ps","index":0})"));
}

TEST(Contract, TensorflowReportsFailuresAndAsksNoProxyAndItsServersLeaveTheGpus) {
  const ClusterView view = view_of({kServer0, kChief0, kWorker0});
  EXPECT_THAT(variables_of(Framework::kTensorflow, view, kWorker0),
              IsSupersetOf({Pair("GRPC_FAIL_FAST", "use_caller"), Pair("no_grpc_proxy", "a,c")}));
  EXPECT_THAT(variables_of(Framework::kTensorflow, view, kServer0), Contains(Pair("CUDA_VISIBLE_DEVICES", "")));
  EXPECT_THAT(variables_of(Framework::kTensorflow, view, kWorker0), Not(Contains(Key("CUDA_VISIBLE_DEVICES"))));
  EXPECT_THAT(variables_of(Framework::kTensorflow, view, kChief0), Not(Contains(Key("TF_USE_LEGACY_KERAS"))));
}

TEST(Contract, OnlyTheEvaluatorSeesTheEvaluator) {
  const ClusterView view = view_of({kServer0, kChief0, kWorker0, kEvaluator0});
  EXPECT_THAT(tf_config_of(view, kChief0), Not(HasSubstr("evaluator")));
  EXPECT_EQ(tf_config_of(view, kEvaluator0),
            R"({"cluster":{"chief":["a:20001"],"worker":["c:20002"],"ps":["a:20000"],"evaluator":["d:20003"]},)"
            R"("task":{"type":"evaluator","index":0}})");
}

TEST(Contract, AnIndexOfTensorflowIsThePlaceInTheList) {
  const ClusterView view = view_of({kServer0, kChief0, kWorker0, kWorker2});  // without worker-1
  EXPECT_EQ(tf_config_of(view, kWorker2),
            R"({"cluster":{"chief":["a:20001"],"worker":["c:20002","d:20003"],"ps":["a:20000"]},)"
            R"("task":{"type":"worker","index":1}})");
}

TEST(Contract, AServerOfPaddleFindsItselfInTheList) {
  const ClusterView view = view_of({kServer0, kServer1, kWorker0, kWorker1});
  EXPECT_THAT(variables_of(Framework::kPaddle, view, kServer1),
              IsSupersetOf({Pair("TRAINING_ROLE", "PSERVER"), Pair("PADDLE_PSERVERS_IP_PORT_LIST", "a:20000,a:20001"),
                            Pair("POD_IP", "a"), Pair("PADDLE_PORT", "20001"), Pair("PADDLE_TRAINERS_NUM", "2"),
                            Pair("PADDLE_ROLE", "PSERVER"), Pair("PADDLE_NNODES", "3")}));
  EXPECT_THAT(variables_of(Framework::kPaddle, view, kWorker1),
              IsSupersetOf({Pair("TRAINING_ROLE", "TRAINER"), Pair("PADDLE_PSERVERS_IP_PORT_LIST", "a:20000,a:20001"),
                            Pair("PADDLE_TRAINER_ID", "1"), Pair("PADDLE_TRAINER_ENDPOINTS", "c:20002,d:20003"),
                            Pair("PADDLE_ROLE", "TRAINER"), Pair("PADDLE_NNODES", "3")}));

  ClusterView ip6 = view_of({kServer0, kWorker0});
  for (TaskAddress& task : ip6.tasks) task.address.host = "fd00::1";
  auto variables = variables_of(Framework::kPaddle, ip6, kServer0);
  EXPECT_EQ(variables["POD_IP"] + ":" + variables["PADDLE_PORT"], variables["PADDLE_PSERVERS_IP_PORT_LIST"]);
}

TEST(Contract, PaddleWithoutServersIsACollective) {
  const ClusterView view = view_of({kWorker0, kWorker1, kWorker2});
  EXPECT_THAT(
      variables_of(Framework::kPaddle, view, kWorker1),
      IsSupersetOf({Pair("PADDLE_MASTER", "a:20000"), Pair("PADDLE_GLOBAL_SIZE", "3"), Pair("PADDLE_GLOBAL_RANK", "1"),
                    Pair("PADDLE_LOCAL_SIZE", "2"), Pair("PADDLE_LOCAL_RANK", "1"), Pair("PADDLE_RANK_IN_NODE", "1"),
                    Pair("PADDLE_NNODES", "2"), Pair("PADDLE_TRAINER_ENDPOINTS", "a:20000,a:20001,c:20002"),
                    Pair("PADDLE_CURRENT_ENDPOINT", "a:20001"), Pair("PADDLE_TRAINER_ID", "1"),
                    Pair("PADDLE_TRAINERS_NUM", "3")}));
  EXPECT_THAT(variables_of(Framework::kPaddle, view, kWorker1), Not(Contains(Key("PADDLE_PSERVERS_IP_PORT_LIST"))));
}

TEST(Contract, ImagesOfPaddle2018HaveAllTheirNames) {
  const ClusterView view = view_of({kScheduler0, kServer0, kServer1, kWorker0, kWorker1});
  const std::vector<std::pair<const std::string, std::string>> everybody = {
      {"TASK_NAME", "clicks"}, {"PSERVER_HOSTS", "a:20001,c:20002"}, {"PSERVERS", "a:20001,c:20002"}, {"TRAINERS", "2"},
      {"TRAINER_COUNT", "2"},  {"MASTER_ENDPOINT", "a:20000"}};
  for (const TaskId id : {kServer1, kWorker1}) {
    EXPECT_THAT(variables_of(Framework::kPaddle2018, view, id), IsSupersetOf(everybody));
  }
  const auto server = variables_of(Framework::kPaddle2018, view, kServer1);
  EXPECT_THAT(server, IsSupersetOf({Pair("TRAINING_ROLE", "PSERVER"), Pair("SERVER_ENDPOINT", "c:20002"),
                                    Pair("TRAINER_INDEX", "0")}));
  EXPECT_THAT(server, Not(Contains(Key("PADDLE_INIT_TRAINER_ID"))));
  const auto trainer = variables_of(Framework::kPaddle2018, view, kWorker1);
  EXPECT_THAT(trainer, IsSupersetOf({Pair("TRAINING_ROLE", "TRAINER"), Pair("TRAINER_INDEX", "1"),
                                     Pair("PADDLE_INIT_TRAINER_ID", "1")}));
  EXPECT_THAT(trainer, Not(Contains(Key("SERVER_ENDPOINT"))));
}

TEST(Contract, PsLiteMeetsAtItsRoot) {
  const ClusterView view = view_of({kScheduler0, kServer0, kWorker0, kWorker1});
  const std::vector<std::pair<const std::string, std::string>> everybody = {
      {"DMLC_PS_ROOT_URI", "a"}, {"DMLC_PS_ROOT_PORT", "20000"}, {"DMLC_NUM_SERVER", "1"}, {"DMLC_NUM_WORKER", "2"}};
  for (const TaskAddress& task : view.tasks) {
    EXPECT_THAT(variables_of(Framework::kDmlc, view, task.id), IsSupersetOf(everybody));
  }
  EXPECT_THAT(variables_of(Framework::kDmlc, view, kScheduler0), Contains(Pair("DMLC_ROLE", "scheduler")));
  EXPECT_THAT(variables_of(Framework::kDmlc, view, kServer0),
              IsSupersetOf({Pair("DMLC_ROLE", "server"), Pair("DMLC_SERVER_ID", "0"), Pair("DMLC_NODE_HOST", "a"),
                            Pair("PORT", "20001")}));
  EXPECT_THAT(variables_of(Framework::kDmlc, view, kWorker1),
              IsSupersetOf({Pair("DMLC_ROLE", "worker"), Pair("DMLC_WORKER_ID", "1"), Pair("DMLC_NODE_HOST", "d"),
                            Pair("PORT", "20003")}));
}

TEST(Contract, WorkersOfPoseidonGetFlags) {
  const ClusterView view = view_of({kScheduler0, kServer0, kWorker0, kWorker1});
  EXPECT_THAT(contract_of(Framework::kPoseidon, view, kWorker1, "r").arguments,
              ElementsAre("--distributed", "--master_address", "tcp://a:20000", "--client_id", "1"));
  EXPECT_THAT(contract_of(Framework::kPoseidon, view, kServer0, "r").arguments, IsEmpty());
  EXPECT_THAT(variables_of(Framework::kPoseidon, view, kServer0), Contains(Pair("PSCLOUD_SCHEDULER", "a:20000")));
  EXPECT_THAT(contract_of(Framework::kDmlc, view, kWorker1, "r").arguments, IsEmpty());
}

TEST(Contract, RanksOfTorchCountOnAHostFromZero) {
  const ClusterView view = view_of({kWorker0, kWorker1, kWorker2});
  EXPECT_THAT(variables_of(Framework::kTorch, view, kWorker1),
              IsSupersetOf({Pair("MASTER_ADDR", "a"), Pair("MASTER_PORT", "20000"), Pair("RANK", "1"),
                            Pair("WORLD_SIZE", "3"), Pair("LOCAL_RANK", "1"), Pair("LOCAL_WORLD_SIZE", "2"),
                            Pair("GROUP_RANK", "0"), Pair("GROUP_WORLD_SIZE", "2"), Pair("ROLE_RANK", "1"),
                            Pair("ROLE_WORLD_SIZE", "3"), Pair("TORCHELASTIC_RUN_ID", "j7")}));
  EXPECT_THAT(variables_of(Framework::kTorch, view, kWorker2),
              IsSupersetOf({Pair("RANK", "2"), Pair("LOCAL_RANK", "0"), Pair("LOCAL_WORLD_SIZE", "1"),
                            Pair("GROUP_RANK", "1"), Pair("PET_NNODES", "3"), Pair("PET_NODE_RANK", "2"),
                            Pair("PET_MASTER_ADDR", "a"), Pair("PET_MASTER_PORT", "20000")}));
}

TEST(Contract, TheServerOfTorchHasRankZeroUnlessThereIsAChief) {
  const ClusterView view = view_of({kServer0, kWorker0, kWorker1});
  EXPECT_THAT(variables_of(Framework::kTorch, view, kServer0),
              IsSupersetOf({Pair("RANK", "0"), Pair("ROLE_NAME", "server"), Pair("ROLE_WORLD_SIZE", "1")}));
  EXPECT_THAT(variables_of(Framework::kTorch, view, kWorker1),
              IsSupersetOf({Pair("RANK", "2"), Pair("ROLE_RANK", "1"), Pair("WORLD_SIZE", "3")}));
  const ClusterView led = view_of({kServer0, kChief0, kWorker0});
  EXPECT_THAT(variables_of(Framework::kTorch, led, kWorker0),
              IsSupersetOf({Pair("RANK", "2"), Pair("MASTER_PORT", "20001")}));
  EXPECT_THAT(variables_of(Framework::kTorch, led, kServer0), Contains(Pair("RANK", "1")));
}

TEST(Contract, WhatAFrameworkCannotDoIsSaid) {
  EXPECT_TRUE(check_contract(Framework::kTensorflow, {kChief0, kServer0, kWorker0, kEvaluator0}));
  EXPECT_TRUE(check_contract(Framework::kTensorflow, {kWorker0, kWorker1}));
  EXPECT_TRUE(check_contract(Framework::kPscloud, {kWorker0}));
  EXPECT_TRUE(check_contract(Framework::kPaddle2018, {kServer0, kWorker0}));
  EXPECT_EQ(check_contract(Framework::kTensorflow, {kScheduler0, kWorker0}).error().message,
            "a tensorflow job has no scheduler: leave it out, or choose another framework");
  EXPECT_EQ(check_contract(Framework::kTensorflow, {kChief0, {TaskRole::kChief, 1}}).error().message,
            "a tensorflow job has at most 1 chief, not 2");
  EXPECT_EQ(check_contract(Framework::kDmlc, {kServer0, kWorker0}).error().message,
            "a dmlc job needs a scheduler, and has none");
  EXPECT_FALSE(check_contract(Framework::kPoseidon, {kServer0, kWorker0}));
  EXPECT_FALSE(check_contract(Framework::kPscloud, {kChief0, kWorker0}));
  EXPECT_FALSE(check_contract(Framework::kPscloud, {}));
}

TEST(Contract, ASchedulerIsThereUnaskedWhereNothingWorksWithout) {
  EXPECT_EQ(schedulers_by_default(Framework::kDmlc), 1);
  EXPECT_EQ(schedulers_by_default(Framework::kPoseidon), 1);
  EXPECT_EQ(schedulers_by_default(Framework::kTensorflow), 0);
  EXPECT_EQ(schedulers_by_default(Framework::kPscloud), 0);
}

TEST(Contract, TheChiefEndsTheJobElseTheWorkers) {
  EXPECT_TRUE(ends_job(TaskRole::kChief, {kServer0, kChief0, kWorker0}));
  EXPECT_FALSE(ends_job(TaskRole::kWorker, {kServer0, kChief0, kWorker0}));
  EXPECT_TRUE(ends_job(TaskRole::kWorker, {kScheduler0, kServer0, kWorker0}));
  EXPECT_FALSE(ends_job(TaskRole::kServer, {kScheduler0, kServer0, kWorker0}));
  EXPECT_TRUE(ends_job(TaskRole::kServer, {kServer0, kServer1}));
}

}  // namespace
}  // namespace pscloud
