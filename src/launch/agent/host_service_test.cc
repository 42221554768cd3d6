#include "launch/agent/host_service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/task.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

JsonValue answer_of(HostService& service, const std::string& question) {
  return *JsonValue::parse(service.answer(*JsonValue::parse(question)));
}

TEST(HostService, SaysHelloWithItsAddress) {
  HostService service;
  const JsonValue hello = answer_of(service, R"({"what":"hello","interface":"lo","folder":"/"})");
  EXPECT_EQ(hello["address"].text(), "127.0.0.1");
  EXPECT_TRUE(hello["has_folder"].truth());
  EXPECT_NE(hello["process"].text(), "");
}

TEST(HostService, NamesProgramsThatAreNotThere) {
  HostService service;
  TaskSpec there, missing;
  there.command = {"sh"};
  missing.command = {"no-such-program"};
  const JsonValue wrong =
      answer_of(service, fmt::format(R"({{"what":"programs","specs":[{},{},{}]}})", task_spec_json(there),
                                     task_spec_json(missing), task_spec_json(missing)))["wrong"];
  ASSERT_EQ(wrong.items().size(), 1u);
  EXPECT_THAT(wrong.items().front().text(), HasSubstr("no-such-program"));
}

TEST(HostService, IsReachedWhileItListensAndNotAfter) {
  HostService one, other;
  const std::string address = answer_of(one, R"({"what":"listen","host":"127.0.0.1"})")["address"].text();
  const std::string probe = fmt::format(R"({{"what":"probe","addresses":["{}"]}})", address);
  EXPECT_EQ(answer_of(other, probe)["wrong"].items().size(), 0u);
  answer_of(one, R"({"what":"quiet"})");
  const JsonValue wrong = answer_of(other, probe);
  ASSERT_EQ(wrong["wrong"].items().size(), 1u);
  EXPECT_THAT(wrong["wrong"].items().front().text(), HasSubstr("refused"));
}

TEST(HostService, WhatItCannotAnswerIsAnError) {
  HostService service;
  for (const char* question : {"{}", R"({"what":"dance"})", R"({"what":"clean","remains":{}})",
                               R"({"what":"put","hash":"x","piece":"!"})", R"({"what":"hello","interface":"lo"})"}) {
    const bool is_fine = std::string_view(question).find("hello") != std::string_view::npos;
    EXPECT_EQ(answer_of(service, question)["error"].text().empty(), is_fine) << question;
  }
}

}  // namespace
}  // namespace pscloud
