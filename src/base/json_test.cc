#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace pscloud {
namespace {

template <class T>
std::string json(const T& value) {
  return JsonWriter().value(value).text();
}

TEST(Json, ObjectsAndArraysNest) {
  JsonWriter writer;
  writer.begin_object().field("role", "server").field("rank", 1).key("tables").begin_array();
  writer.begin_object().field("name", "w").end_object().begin_object().end_object().value(2).end_array();
  writer.key("none").begin_array().end_array().field("up", true).end_object();
  EXPECT_EQ(writer.text(), R"({"role":"server","rank":1,"tables":[{"name":"w"},{},2],"none":[],"up":true})");
}

TEST(Json, TextIsEscaped) {
  EXPECT_EQ(json("a\"b\\c\nd\te\x01\x7f/"), R"("a\"b\\c\nd\u0009e\u0001\u007f/")");
  EXPECT_EQ(json(std::string("a\0b", 3)), R"("a\u0000b")");
  EXPECT_EQ(json("größer 参数"), "\"größer 参数\"");
  EXPECT_EQ(JsonWriter().begin_object().field("\"", "").end_object().text(), R"({"\"":""})");
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) { EXPECT_EQ(json("a\xff\xc3(b"), "\"a\uFFFD\uFFFD(b\""); }

TEST(Json, NumbersKeepTheirValue) {
  EXPECT_EQ(json(0.1), "0.1");
  EXPECT_EQ(json(1e300), "1e+300");
  EXPECT_EQ(json(-2.0), "-2");
  EXPECT_EQ(json(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(json(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(json(7u), "7");
}

TEST(Json, WhatIsNoNumberIsNull) {
  EXPECT_EQ(json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(json(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace pscloud
