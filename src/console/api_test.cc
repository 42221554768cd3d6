#include "console/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json_value.h"
#include "console/asset.h"
#include "launch/run_folder.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kToken = "0123456789abcdef";

// Keeps what a handler writes.
class KeptStream final : public HttpStream {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    if (!bytes.empty()) silence = {};
    return true;
  }
  // Does not: what a stream does over time is seen at once.
  bool pause(std::chrono::milliseconds time) override {
    silence += time;
    longest_silence = std::max(longest_silence, silence);
    return ++pauses < 100;
  }

  std::string text;
  int pauses = 0;
  std::chrono::milliseconds silence{};
  std::chrono::milliseconds longest_silence{};
};

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pscloud-api-XXXXXX";
    home_ = ::mkdtemp(name);
    ApiOptions options;
    options.runs = home_ + "/runs";
    options.token = kToken;
    options.version = "1.2.3";
    options.clean = [this](const std::string& run) -> Result<> {
      cleaned_.push_back(run);
      return {};
    };
    api_ = std::make_unique<Api>(options);
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  static RunState state_of(const std::string& run, RunState::Step step) {
    RunState state;
    state.run = run;
    state.job = "j1";
    state.target = "local";
    state.step = step;
    state.began_unix_ms = 1000;
    if (state.ended()) state.ended_unix_ms = 5000;
    state.tasks.push_back({{TaskRole::kServer, 0}, TaskState::kStopped, "10.0.0.7", {"10.0.0.7", 77}, 0});
    state.tasks.push_back({{TaskRole::kWorker, 0}, TaskState::kFailed, "", {}, 3});
    return state;
  }

  // One that has ended.
  void make_run(const std::string& run, const RunState& state) {
    const auto files = [&](const std::string&) -> Result<std::map<std::string, std::string>> {
      return std::map<std::string, std::string>{{"state.json", run_state_json(state)},
                                                {"plan.json", R"({"framework":"paddle"})"}};
    };
    auto folder = RunFolder::create(home_ + "/runs", run, true, files);
    ASSERT_TRUE(folder) << folder.error().message;
    if (state.ended()) folder->settle();
  }
  // One whose launcher is there as long as the folder is kept.
  RunFolder make_watched_run(const std::string& run) {
    const auto files = [&](const std::string&) -> Result<std::map<std::string, std::string>> {
      return std::map<std::string, std::string>{
          {"state.json", run_state_json(state_of(run, RunState::Step::kRunning))}};
    };
    auto folder = RunFolder::create(home_ + "/runs", run, true, files);
    EXPECT_TRUE(folder) << folder.error().message;
    return *std::move(folder);
  }
  void make_run(const std::string& run) { make_run(run, state_of(run, RunState::Step::kFailed)); }

  void append(const std::string& run, const std::string& file, const std::string& text) const {
    std::ofstream(home_ + "/runs/" + run + "/" + file, std::ios::app) << text;
  }

  HttpReply ask(const std::string& method, const std::string& path, HttpCall::Fields query = {},
                HttpCall::Fields headers = {}) const {
    HttpCall call;
    call.method = method;
    call.path = path;
    call.query = std::move(query);
    call.headers = std::move(headers);
    call.headers.emplace_back("Authorization", std::string("Bearer ") + kToken);
    call.headers.emplace_back("Host", "127.0.0.1:80");
    return api_->answer(call);
  }
  HttpReply get(const std::string& path, HttpCall::Fields query = {}, HttpCall::Fields headers = {}) const {
    return ask("GET", path, std::move(query), std::move(headers));
  }
  JsonValue json(const std::string& path, HttpCall::Fields query = {}) const {
    const HttpReply reply = get(path, std::move(query));
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    EXPECT_EQ(reply.content_type, "application/json");
    auto value = JsonValue::parse(reply.body);
    EXPECT_TRUE(value) << reply.body;
    return value ? *std::move(value) : JsonValue();
  }

  std::string home_;
  std::unique_ptr<Api> api_;
  std::vector<std::string> cleaned_;
};

TEST_F(ApiTest, NothingIsToldWithoutTheToken) {
  make_run("secret");
  for (const char* path : {"/api/runs", "/api/runs/secret", "/api/about", "/status", "/log/master.log", "/nothing"}) {
    HttpCall call;
    call.method = "GET";
    call.path = path;
    const HttpReply reply = api_->answer(call);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
    for (const std::string wrong : {"", "0", "0123456789abcdee", "0123456789abcdef0"}) {
      call.headers = {{"Authorization", "Bearer " + wrong}};
      EXPECT_EQ(api_->answer(call).status, 401) << path << " " << wrong;
      call.headers.clear();
      call.query = {{"token", wrong}};
      EXPECT_EQ(api_->answer(call).status, 401) << path << " " << wrong;
    }
  }
  HttpCall call;
  call.method = "GET";
  call.path = "/api/about";
  call.query = {{"token", kToken}};
  EXPECT_EQ(api_->answer(call).status, 200);
}

TEST_F(ApiTest, ThePageNeedsNoTokenAndIsAskedForOnce) {
  HttpCall call;
  call.method = "GET";
  call.path = "/";
  const HttpReply page = api_->answer(call);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(page.body, Not(HasSubstr("<script>")));  // the policy forbids it
  for (const auto& [name, value] : page.headers) {
    if (name == "ETag") call.headers = {{"If-None-Match", value}};
  }
  ASSERT_FALSE(call.headers.empty());
  EXPECT_EQ(api_->answer(call).status, 304);
  for (const Asset& asset : assets()) {
    call.path = "/assets/" + std::string(asset.name);
    call.headers.clear();
    EXPECT_EQ(api_->answer(call).body, asset.bytes);
    EXPECT_THAT(api_->answer(call).content_type, Not(HasSubstr("octet"))) << asset.name;
  }
  call.path = "/assets/../../etc/passwd";
  EXPECT_EQ(api_->answer(call).status, 404);
  call.method = "POST";
  EXPECT_EQ(api_->answer(call).status, 405);
}

TEST_F(ApiTest, RunsComeInPagesTheNewestFirst) {
  EXPECT_THAT(json("/api/runs")["runs"].items(), IsEmpty());
  for (const char* run : {"a", "b", "c"}) make_run(run);
  make_run("going", state_of("going", RunState::Step::kRunning));
  const JsonValue first = json("/api/runs", {{"limit", "2"}});
  EXPECT_EQ(first["total"].integer(), 4);
  ASSERT_EQ(first["runs"].items().size(), 2u);
  EXPECT_EQ(first["runs"].items()[0]["name"].text(), "going");
  EXPECT_EQ(first["runs"].items()[0]["state"].text(), "lost");  // nobody holds its lock
  EXPECT_TRUE(first["runs"].items()[0]["ended_unix_ms"].is(JsonValue::Kind::kNull));
  EXPECT_EQ(first["next"].text(), "c");
  const JsonValue second = json("/api/runs", {{"limit", "2"}, {"before", "c"}});
  ASSERT_EQ(second["runs"].items().size(), 2u);
  EXPECT_EQ(second["runs"].items()[0]["name"].text(), "b");
  EXPECT_EQ(second["runs"].items()[0]["ended_unix_ms"].integer(), 5000);
  EXPECT_EQ(second["runs"].items()[0]["nodes"].integer(), 2);
  EXPECT_TRUE(second["next"].is(JsonValue::Kind::kNull));
  EXPECT_EQ(json("/api/runs", {{"state", "open"}})["total"].integer(), 1);
  EXPECT_EQ(get("/api/runs", {{"limit", "0"}}).status, 400);
  EXPECT_EQ(get("/api/runs", {{"limit", "x"}}).status, 400);
  EXPECT_EQ(get("/api/runs", {{"state", "x"}}).status, 400);
  EXPECT_EQ(get("/api/runs", {{"before", "nobody"}}).status, 404);
}

TEST_F(ApiTest, WhatMachinesCostIsToldIfTheClusterSaysSo) {
  RunState state = state_of("clicks", RunState::Step::kFailed);
  state.began_unix_ms = 1000;
  state.ended_unix_ms = 1000 + 1800 * 1000;
  state.cost_usd_per_hour = 3;
  make_run("clicks", state);
  EXPECT_EQ(json("/api/runs/clicks")["cost_usd_per_hour"].number(), 3);
  EXPECT_EQ(json("/api/runs/clicks")["cost_usd"].number(), 1.5);
  EXPECT_EQ(json("/api/runs")["runs"].items()[0]["cost_usd"].number(), 1.5);
  EXPECT_FALSE(json("/api/runs/clicks")["cost_incomplete"].truth());
  state.cost_incomplete = true;
  make_run("more", state);
  EXPECT_TRUE(json("/api/runs/more")["cost_incomplete"].truth());
  const JsonValue runs = json("/api/runs");
  const auto incomplete = [](const JsonValue& run) { return run["cost_incomplete"].truth(); };
  EXPECT_EQ(std::ranges::count_if(runs["runs"].items(), incomplete), 1);
}

TEST_F(ApiTest, ARunIsToldWithItsTasksAndTheirLastSamples) {
  RunState state = state_of("clicks", RunState::Step::kFailed);
  state.message = "worker-0 has failed";
  state.root_cause = TaskId{TaskRole::kWorker, 0};
  make_run("clicks", state);
  append("clicks", "logs/worker-0.log", "12345");
  append("clicks", "samples.csv",
         "1000,worker-0,loss,0.7\n2000,worker-0,loss,0.5\n2000,worker-0,cpu_percent,99\n3000,wor");
  const JsonValue run = json("/api/runs/clicks");
  EXPECT_EQ(run["framework"].text(), "paddle");
  EXPECT_EQ(run["state"].text(), "failed");
  EXPECT_EQ(run["message"].text(), "worker-0 has failed");
  EXPECT_EQ(run["root_cause"].text(), "worker-0");
  EXPECT_TRUE(run["cost_usd"].is(JsonValue::Kind::kNull)) << "nobody has said what a machine costs";
  EXPECT_TRUE(run["tensorboard"].is(JsonValue::Kind::kNull));
  const std::string steps = home_ + "/runs/clicks/tensorboard";
  std::filesystem::create_directory(steps);
  EXPECT_EQ(json("/api/runs/clicks")["tensorboard"].text(), steps);
  ASSERT_EQ(run["tasks"].items().size(), 2u);
  const JsonValue& server = run["tasks"].items()[0];
  EXPECT_EQ(server["address"].text(), "10.0.0.7:77");
  EXPECT_TRUE(server["sample"].is(JsonValue::Kind::kNull));
  const JsonValue& worker = run["tasks"].items()[1];
  EXPECT_EQ(worker["role"].text(), "worker");
  EXPECT_EQ(worker["code"].integer(), 3);
  EXPECT_EQ(worker["log_bytes"].integer(), 5);
  EXPECT_EQ(worker["sample"]["unix_ms"].integer(), 2000);
  EXPECT_EQ(worker["sample"]["loss"].number(), 0.5);
  EXPECT_EQ(json("/api/runs/clicks/nodes").members().size(), 0u);
  append("clicks", "nodes.json", R"({"server-0":{"keys":7}})");
  EXPECT_EQ(json("/api/runs/clicks/nodes")["server-0"]["keys"].integer(), 7);
}

TEST_F(ApiTest, NamesNeverLeadOutOfTheFolderOfRuns) {
  make_run("a");
  append("a", "private", "secret\n");
  std::ofstream(home_ + "/state.json") << "secret\n";
  const std::string zero("a\0/", 3);
  for (const std::string& name :
       std::vector<std::string>{"..", ".", "", "../runs/a", "a/../a", "%2e%2e", "..%2f", "a\n", "-", zero, "a/"}) {
    for (const char* rest : {"", "/samples", "/nodes", "/stream", "/logs/launcher", "/logs/../private"}) {
      const HttpReply reply = get("/api/runs/" + name + rest);
      EXPECT_EQ(reply.status, 404) << name << rest << ": " << reply.body;
      EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
    }
  }
  for (const std::string task :
       {"..", "../private", "private", "worker-00", "worker-9", "worker-0.log", "", "/", "launcher/"}) {
    EXPECT_EQ(get("/api/runs/a/logs/" + task).status, 404) << task;
    EXPECT_EQ(get("/api/runs/a/stream", {{"logs", "worker-0," + task + ",x"}}).status, 404) << task;
    EXPECT_EQ(get("/log/" + task).status, 404) << task;
  }
  EXPECT_EQ(get("/api/runs/" + std::string(5000, 'a')).status, 404);
}

TEST_F(ApiTest, ALogIsGivenWholeOrInPart) {
  make_run("a");
  EXPECT_EQ(get("/api/runs/a/logs/worker-0").status, 200);  // nothing was written yet
  append("a", "logs/worker-0.log", "0123456789");
  EXPECT_EQ(get("/api/runs/a/logs/worker-0").body, "0123456789");
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {{"tail", "3"}}).body, "789");
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {{"tail", "99"}}).body, "0123456789");
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {{"tail", "-1"}}).status, 400);
  const HttpReply part = get("/api/runs/a/logs/worker-0", {}, {{"Range", "bytes=2-4"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_THAT(part.headers, testing::Contains(std::pair<std::string, std::string>("Content-Range", "bytes 2-4/10")));
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {}, {{"Range", "bytes=10-"}}).status, 416);
}

TEST_F(ApiTest, ALargeLogIsAStreamOfAllItsBytes) {
  make_run("a");
  std::string all;
  while (all.size() < 1000000) all += fmt::format("line {}\n", all.size());
  append("a", "logs/worker-0.log", all);
  const HttpReply reply = get("/api/runs/a/logs/worker-0", {}, {{"Range", "bytes=5-"}});
  ASSERT_TRUE(reply.stream);
  EXPECT_EQ(reply.stream_bytes, all.size() - 5);
  KeptStream kept;
  reply.stream(kept);
  EXPECT_TRUE(kept.text == all.substr(5));
}

TEST_F(ApiTest, ALogCanBeSearched) {
  make_run("a");
  std::string log = "first Error here\nnothing\nERROR again, error twice\n\xff\x1b[31m error\n";
  append("a", "logs/worker-0.log", log);
  const JsonValue found = json("/api/runs/a/logs/worker-0", {{"search", "eRRor"}});
  ASSERT_EQ(found["matches"].items().size(), 3u);  // a line counts once
  EXPECT_EQ(found["matches"].items()[0]["line"].text(), "first Error here");
  EXPECT_EQ(found["matches"].items()[1]["offset"].integer(), 25);
  EXPECT_EQ(found["matches"].items()[2]["line"].text(), "\uFFFD\x1b[31m error");
  EXPECT_FALSE(found["more"].truth());
  EXPECT_TRUE(json("/api/runs/a/logs/worker-0", {{"search", "error"}, {"max", "2"}})["more"].truth());
  EXPECT_THAT(json("/api/runs/a/logs/server-0", {{"search", "error"}})["matches"].items(), IsEmpty());
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {{"search", ""}}).status, 400);
  EXPECT_EQ(get("/api/runs/a/logs/worker-0", {{"search", std::string(500, 'x')}}).status, 400);
  // Far into a file, across the pieces it is read in.
  std::string filler;
  while (filler.size() < 3000000) filler += "filler filler filler\n";
  append("a", "logs/worker-0.log", filler + "the Needle\n");
  const JsonValue far = json("/api/runs/a/logs/worker-0", {{"search", "needle"}});
  ASSERT_EQ(far["matches"].items().size(), 1u);
  EXPECT_EQ(far["matches"].items()[0]["offset"].integer(), static_cast<int64_t>(log.size() + filler.size()));
}

TEST_F(ApiTest, SamplesAreThinnedEvenly) {
  make_run("a");
  std::string text;
  for (int i = 0; i <= 1000; ++i) text += fmt::format("{},worker-{},loss,{}\n", i, i % 2, i);
  append("a", "samples.csv", text + "hostile,\"line\n");
  const JsonValue all = json("/api/runs/a/samples");
  EXPECT_EQ(all["rows"].items().size(), 1000u);  // after 0
  const JsonValue few = json("/api/runs/a/samples", {{"max", "5"}, {"after_unix_ms", "100"}});
  std::vector<int64_t> times;
  for (const JsonValue& row : few["rows"].items()) {
    if (row.items()[1].text() == "worker-0") times.push_back(row.items()[0].integer());
  }
  EXPECT_THAT(times, ElementsAre(102, 326, 550, 774, 1000));
  EXPECT_EQ(get("/api/runs/a/samples", {{"max", "0"}}).status, 400);
}

TEST_F(ApiTest, AStreamTellsAllOfARunThatIsOver) {
  make_run("a");
  append("a", "logs/worker-0.log", "one\ntwo \x80\"\nevent: forged\n\ndata: x\nlast");
  append("a", "logs/server-0.log", "s\n");
  append("a", "samples.csv", "1000,worker-0,loss,0.5\n");
  const HttpReply reply = get("/api/runs/a/stream", {{"logs", "all"}, {"from", "start"}});
  ASSERT_TRUE(reply.stream) << reply.body;
  EXPECT_EQ(reply.content_type, "text/event-stream");
  EXPECT_FALSE(reply.stream_bytes);
  KeptStream kept;
  reply.stream(kept);
  EXPECT_THAT(kept.text, HasSubstr("event: lines\ndata: {\"task\":\"worker-0\",\"offset\":38,\"lines\":[\"one\",\"two "
                                   "\uFFFD\\\"\",\"event: forged\",\"\",\"data: x\",\"last\"]}\n\n"));
  EXPECT_THAT(kept.text, HasSubstr("{\"task\":\"server-0\",\"offset\":2,\"lines\":[\"s\"]}"));
  EXPECT_THAT(kept.text, HasSubstr("event: state\ndata: {\"name\":\"a\""));
  EXPECT_THAT(kept.text, HasSubstr("\"sample\":{\"unix_ms\":1000,\"loss\":0.5}"));
  EXPECT_TRUE(kept.text.ends_with("event: end\ndata: {}\n\n"));
  EXPECT_EQ(kept.pauses, 0);
  EXPECT_EQ(get("/api/runs/a/stream", {{"from", "middle"}}).status, 400);
}

// A server cuts off what is silent, and a page takes it for broken.
TEST_F(ApiTest, AStreamOfARunInWhichNothingHappensSaysThatItIsAlive) {
  const auto folder = make_watched_run("a");
  const HttpReply reply = get("/api/runs/a/stream");
  ASSERT_TRUE(reply.stream) << reply.body;
  KeptStream kept;
  reply.stream(kept);
  EXPECT_GT(kept.longest_silence, std::chrono::seconds(1));
  EXPECT_LT(kept.longest_silence, HttpServer::kStreamTime / 2);
  EXPECT_THAT(kept.text, HasSubstr(": alive\n\n"));
}

TEST_F(ApiTest, APostNeedsTheMarkAndNoForeignOrigin) {
  make_run("a", state_of("a", RunState::Step::kRunning));
  EXPECT_EQ(ask("POST", "/api/runs/a/stop").status, 403);
  EXPECT_EQ(ask("POST", "/api/runs/a/stop", {}, {{"X-Pscloud", "1"}, {"Origin", "http://evil.example"}}).status, 403);
  EXPECT_EQ(ask("POST", "/api/runs/a/stop", {}, {{"X-Pscloud", "1"}, {"Origin", "null"}}).status, 403);
  EXPECT_EQ(ask("POST", "/api/runs/a/stop", {}, {{"X-Pscloud", "1"}, {"Origin", "https://127.0.0.1:80"}}).status, 403);
  EXPECT_THAT(cleaned_, IsEmpty());
  EXPECT_EQ(get("/api/runs/a/stop").status, 405);
  EXPECT_EQ(ask("POST", "/api/runs/a", {}, {{"X-Pscloud", "1"}}).status, 405);
  EXPECT_EQ(ask("DELETE", "/api/runs/a").status, 405);
  // Its launcher is gone: somebody else cleans up.
  const HttpReply reply = ask("POST", "/api/runs/a/stop", {}, {{"X-Pscloud", "1"}, {"Origin", "http://127.0.0.1:80"}});
  EXPECT_EQ(reply.status, 202) << reply.body;
  EXPECT_EQ(reply.body, "{\"state\":\"lost\"}\n");
  EXPECT_EQ(ask("POST", "/api/runs/a/cleanup", {}, {{"X-Pscloud", "1"}}).status, 202);
  EXPECT_THAT(cleaned_, ElementsAre("a", "a"));
}

TEST_F(ApiTest, OverTlsThePageMayStandOnTheLoopbackInTheClearAndNowhereElse) {
  make_run("a", state_of("a", RunState::Step::kRunning));
  const auto status = [&](const std::string& host, const std::string& origin) {
    HttpCall call;
    call.method = "POST";
    call.path = "/api/runs/a/stop";
    call.secure = true;
    call.headers = {{"Authorization", std::string("Bearer ") + kToken}, {"X-Pscloud", "1"}};
    call.headers.insert(call.headers.end(), {{"Host", host}, {"Origin", origin}});
    return api_->answer(call).status;
  };
  EXPECT_EQ(status("build.example:77", "https://build.example:77"), 202);
  EXPECT_EQ(status("127.0.0.1:77", "http://127.0.0.1:77"), 202);  // `pscloud console --controller`
  EXPECT_EQ(status("build.example:77", "http://build.example:77"), 403);
  EXPECT_EQ(status("127.0.0.1:77", "http://127.0.0.1:78"), 403);
}

TEST_F(ApiTest, PaddlesPathsAnswerAsTheyDid) {
  EXPECT_EQ(get("/status").status, 404);  // no run
  make_run("a");
  append("a", "launcher.log", "it began\n");
  append("a", "logs/worker-0.log", "w\n");
  append("a", "logs/server-0.log", "s\n");
  for (const char* path : {"/status", "/master_logs", "/log/master.log"}) {
    EXPECT_EQ(get(path).body, "it began\n") << path;
    EXPECT_EQ(get(path).content_type, "text/text");
  }
  for (const char* path : {"/logs", "/list_logs"})
    EXPECT_EQ(get(path).body, "master.log\npserver_0.log\ntrainer_0.log\n");
  EXPECT_EQ(get("/log/trainer_0.log").body, "w\n");
  EXPECT_EQ(get("/log/pserver_0.log").body, "s\n");
  EXPECT_EQ(get("/log/pserver_10.0.0.7.log").body, "s\n");
  EXPECT_EQ(get("/log/trainer_0_err.log").status, 404);
  EXPECT_EQ(get("/log/..%2fstate.json").status, 404);
  EXPECT_EQ(get("/nothing").body, "NO ACTION FOUND");
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(ask("HEAD", "/anything").status, 200);
  EXPECT_EQ(ask("POST", "/status").status, 404);
  EXPECT_EQ(ask("POST", "/save_data").body, "DATA SAVED!");
  EXPECT_EQ(ask("POST", "/cleanup").body, "cleanup in progress");
  make_run("b");
  append("b", "launcher.log", "another\n");
  EXPECT_EQ(get("/status").body, "another\n");  // the newest
  EXPECT_EQ(get("/status", {{"run", "a"}}).body, "it began\n");
}

TEST_F(ApiTest, SavedDataIsAppended) {
  make_run("a");
  HttpCall call;
  call.method = "POST";
  call.path = "/save_data";
  call.query = {{"token", kToken}};
  for (const char* text : {"one\n", "two\n"}) {
    call.body = text;
    EXPECT_EQ(api_->answer(call).status, 200);
  }
  std::ifstream file(home_ + "/runs/a/a.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one\ntwo\n");
}

TEST_F(ApiTest, AboutTellsWhoAnswers) {
  const JsonValue about = json("/api/about");
  EXPECT_EQ(about["version"].text(), "1.2.3");
  EXPECT_FALSE(about["host"].text().empty());
  EXPECT_FALSE(about["user"].text().empty());
  EXPECT_FALSE(about["controller"].truth(true));
}

}  // namespace
}  // namespace pscloud
