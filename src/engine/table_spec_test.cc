#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pscloud/table.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TableSpec good_spec() {
  TableSpec spec;
  spec.name = "weights";
  return spec;
}

// The message of a refusal; empty if it was accepted.
std::string refusal(const TableSpec& spec) {
  const auto result = validate(spec);
  if (result) return "";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(TableSpec, DefaultsWithANameAreGood) { EXPECT_EQ(refusal(good_spec()), ""); }

TEST(TableSpec, NameHas1To200PrintableBytes) {
  TableSpec spec = good_spec();
  spec.name = "";
  EXPECT_THAT(refusal(spec), HasSubstr("1 to 200 bytes"));
  spec.name = std::string(200, 'x');
  EXPECT_EQ(refusal(spec), "");
  spec.name += 'x';
  EXPECT_THAT(refusal(spec), HasSubstr("this one has 201"));
  spec.name = "two\nlines";
  EXPECT_THAT(refusal(spec), HasSubstr("printable"));
}

TEST(TableSpec, WidthIs1To65536) {
  TableSpec spec = good_spec();
  spec.width = 0;
  EXPECT_THAT(refusal(spec), HasSubstr("table weights: width is 0"));
  spec.width = 65536;
  EXPECT_EQ(refusal(spec), "");
  spec.width = 65537;
  EXPECT_THAT(refusal(spec), HasSubstr("width is 65537"));
}

TEST(TableSpec, DenseTableNeedsRowsThatFitIn64Bits) {
  TableSpec spec = good_spec();
  spec.kind = TableKind::kDense;
  EXPECT_THAT(refusal(spec), HasSubstr("rows > 0"));
  spec.rows = 1;
  EXPECT_EQ(refusal(spec), "");
  spec.width = 65536;
  spec.rows = uint64_t{1} << 46;
  EXPECT_THAT(refusal(spec), HasSubstr("at most"));
  spec.kind = static_cast<TableKind>(3);
  EXPECT_THAT(refusal(spec), HasSubstr("kind is 3"));
}

TEST(TableSpec, ASketchHasCellsAndHashesAndNothingElse) {
  TableSpec spec{.name = "t", .kind = TableKind::kSketch};
  EXPECT_THAT(refusal(spec), HasSubstr("rows > 0"));
  spec.rows = 100;
  EXPECT_THAT(refusal(spec), HasSubstr("0 hashes"));
  spec.hashes = 2;
  EXPECT_EQ(refusal(spec), "");
  spec.width = 2;
  EXPECT_THAT(refusal(spec), HasSubstr("width 1"));
}

TEST(TableSpec, UpdaterHasAShortNameAndFewFiniteNumbers) {
  TableSpec spec = good_spec();
  spec.updater.name = "";
  EXPECT_THAT(refusal(spec), HasSubstr("updater"));
  spec.updater.name = std::string(65, 'u');
  EXPECT_THAT(refusal(spec), HasSubstr("1 to 64"));
  spec.updater = {"sgd", {{"learning_rate", NAN}}};
  EXPECT_THAT(refusal(spec), HasSubstr("learning_rate of updater sgd"));
  spec.updater = {"sgd", std::vector<std::pair<std::string, float>>(17, {"x", 1.0f})};
  EXPECT_THAT(refusal(spec), HasSubstr("at most 16"));
  spec.updater = {"sgd", {{"", 1.0f}}};
  EXPECT_THAT(refusal(spec), HasSubstr("names of updater sgd's numbers"));
}

TEST(TableSpec, InitialValuesAreAFiniteRange) {
  TableSpec spec = good_spec();
  spec.initial = {1, 1, 0};
  EXPECT_EQ(refusal(spec), "");
  spec.initial = {1, 0.5, 0};
  EXPECT_THAT(refusal(spec), HasSubstr("low not above high"));
  spec.initial = {0, kInfinity, 0};
  EXPECT_THAT(refusal(spec), HasSubstr("finite"));
}

TEST(TableSpec, ConsistencyIsOneOfFour) {
  TableSpec spec = good_spec();
  spec.consistency.kind = static_cast<Consistency::Kind>(4);
  EXPECT_THAT(refusal(spec), HasSubstr("async, bsp, ssp or sum"));
}

TEST(TableSpec, FilterNumbersAreInRange) {
  TableSpec spec = good_spec();
  spec.push_filters = {{FilterKind::kFixedPoint, 4}};
  EXPECT_THAT(refusal(spec), HasSubstr("push filters: fixed_point with num_bytes 4"));
  spec.push_filters = {};
  spec.pull_filters = {{FilterKind::kNoise, 2, 0, -1}};
  EXPECT_THAT(refusal(spec), HasSubstr("pull filters: noise"));
  spec.pull_filters = {{FilterKind::kLz4, 2, NAN, 0}};
  EXPECT_THAT(refusal(spec), HasSubstr("finite"));
  spec.pull_filters = std::vector<FilterSpec>(9, {FilterKind::kLz4});
  EXPECT_THAT(refusal(spec), HasSubstr("at most 8"));
  spec.pull_filters = {{static_cast<FilterKind>(99)}};
  EXPECT_THAT(refusal(spec), HasSubstr("no filter of kind 99"));
}

TEST(TableId, IsStableAndNeverZero) {
  // The low 32 bits of XXH3_64bits("weights"), computed with libxxhash from Python.
  EXPECT_EQ(table_id("weights"), 0x3ff53c71u);
  EXPECT_NE(table_id("weights"), table_id("weight"));
  EXPECT_NE(table_id(""), 0u);
}

}  // namespace
}  // namespace pscloud
