#include "base/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pscloud {
namespace {

using Kind = JsonValue::Kind;

JsonValue parsed(std::string_view text) {
  auto value = JsonValue::parse(text);
  EXPECT_TRUE(value) << (value ? "" : value.error().message);
  return value ? *value : JsonValue();
}

std::string complaint(std::string_view text) {
  const auto value = JsonValue::parse(text);
  return value ? "none" : value.error().message;
}

TEST(JsonValue, EveryKindIsRead) {
  const JsonValue value = parsed(R"( {"a": [1, -2.5e3, true, false, null], "b": {"c": "d"}} )");
  ASSERT_EQ(value["a"].items().size(), 5);
  EXPECT_EQ(value["a"].items()[0].integer(), 1);
  EXPECT_EQ(value["a"].items()[1].number(), -2500);
  EXPECT_TRUE(value["a"].items()[2].truth());
  EXPECT_FALSE(value["a"].items()[3].truth(true));
  EXPECT_TRUE(value["a"].items()[4].is(Kind::kNull));
  EXPECT_EQ(value["b"]["c"].text(), "d");
}

TEST(JsonValue, WhatIsMissingOrSomethingElseIsNothing) {
  const JsonValue value = parsed(R"({"a": 7, "large": 1e30, "half": 0.5})");
  EXPECT_EQ(value["a"]["b"]["c"].text(), "");
  EXPECT_EQ(value["a"].text(), "");
  EXPECT_EQ(value["b"].integer(3), 3);
  EXPECT_EQ(value["large"].integer(3), 3);
  EXPECT_EQ(value["half"].integer(3), 3);
  EXPECT_TRUE(value["a"].items().empty());
}

TEST(JsonValue, EscapesBecomeWhatTheyMean) {
  EXPECT_EQ(parsed(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")").text(),
            "\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parsed(std::string(R"("a\u0000b")")).text(), std::string("a\0b", 3));
}

TEST(JsonValue, AMistakeIsNamedByItsPlace) {
  EXPECT_EQ(complaint("{\n  \"a\": ,\n}"), "2:8: a value is expected here");
  EXPECT_EQ(complaint("{\"a\" 1}"), "1:6: a ':' is expected here");
  EXPECT_EQ(complaint("[1 2]"), "1:4: a ',' or ']' is expected here");
  EXPECT_EQ(complaint("{\"a\": 1, \"a\": 2}"), "1:10: this name stands here for the second time");
  EXPECT_EQ(complaint("{\"a\": null, \"a\": null}"), "1:13: this name stands here for the second time");
  EXPECT_EQ(complaint(""), "1:1: a value is missing");
  EXPECT_EQ(complaint("{} x"), "1:4: there is more after the end of the value");
  EXPECT_EQ(complaint("{a: 1}"), "1:2: a name in quotes is expected here");
}

TEST(JsonValue, WhatIsNoJsonIsRefused) {
  for (const char* text : {"01",          "1.",       ".5",        "+1",          "1e",
                           "-",           "nul",      "'a'",       "[1,]",        "{\"a\":1,}",
                           "\"a",         "\"\\x\"",  "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
                           "\"\\udc00\"", "\"a\nb\"", "[",         "{",           "NaN",
                           "tru"}) {
    EXPECT_NE(complaint(text), "none") << text;
  }
}

TEST(JsonValue, DepthIsBounded) {
  EXPECT_EQ(complaint(std::string(60, '[') + std::string(60, ']')), "none");
  EXPECT_THAT(complaint(std::string(100000, '[')), testing::HasSubstr("nested too deep"));
}

TEST(JsonValue, AValueKnowsItsPlace) {
  const JsonValue value = parsed("{\n  \"a\": [1,\n 2]}");
  EXPECT_EQ(value["a"].place(), "2:8");
  EXPECT_EQ(value["a"].items()[1].place(), "3:2");
}

}  // namespace
}  // namespace pscloud
