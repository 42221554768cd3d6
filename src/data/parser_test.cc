#include "data/parser.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "data/murmur3.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Parsed {
  RowBlock block;
  BadLines bad;
};

Parsed parse(ExampleFormat format, std::string text, bool ignore_groups = false, Labels labels = Labels::kNeeded) {
  Parsed parsed;
  const size_t size = text.size();
  text.append(kScanPadding, '\0');
  make_parser(format, ignore_groups, labels)->parse(std::string_view(text).substr(0, size), parsed.block, parsed.bad);
  return parsed;
}

std::string complaint(ExampleFormat format, const std::string& line) {
  const Parsed parsed = parse(format, line);
  EXPECT_EQ(parsed.bad.count, 1u) << line;
  EXPECT_EQ(parsed.block.rows(), 0u) << line;
  EXPECT_THAT(parsed.block.keys, IsEmpty()) << line;
  return parsed.bad.first.empty()
             ? ""
             : fmt::format("{}: {}", parsed.bad.first.front().offset + 1, parsed.bad.first.front().reason);
}

TEST(Parser, LinesEndAsTheyMay) {
  const auto [block, bad] = parse(ExampleFormat::kLibsvm, "1 1:2\n\n  \t \r\n-1 3:4 \r\n0 5:6");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, -1, 0));
  EXPECT_THAT(block.keys, ElementsAre(1, 3, 5));
  EXPECT_THAT(block.values, ElementsAre(2, 4, 6));
  EXPECT_THAT(block.ends, ElementsAre(1, 2, 3));
}

TEST(Parser, ABadLineIsLeftOutAndTold) {
  const auto [block, bad] = parse(ExampleFormat::kLibsvm, "1 1:1\n1 2:2 3:x 4:4\n1 5:5\n");
  EXPECT_THAT(block.keys, ElementsAre(1, 5));
  EXPECT_THAT(block.values, ElementsAre(1, 5));
  EXPECT_EQ(bad.count, 1u);
  ASSERT_EQ(bad.first.size(), 1u);
  EXPECT_EQ(bad.first[0].offset, 14u);
  EXPECT_EQ(bad.first[0].reason, "the value of key 3 is no number");
}

TEST(Parser, OfManyBadLinesTheFirstAreKept) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "x\n";
  const auto [block, bad] = parse(ExampleFormat::kLibsvm, text);
  EXPECT_EQ(bad.count, 100u);
  EXPECT_EQ(bad.first.size(), BadLines::kKept);
}

TEST(Parser, Libsvm) {
  const auto [block, bad] =
      parse(ExampleFormat::kLibsvm, "+1 7:0.5 18446744073709551615:-1e3\t9:1 # who knows\n0.25\n-1 3:1");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, 0.25, -1));
  EXPECT_THAT(block.keys, ElementsAre(7, UINT64_MAX, 9, 3));
  EXPECT_THAT(block.values, ElementsAre(0.5, -1000, 1, 1));
  EXPECT_THAT(block.ends, ElementsAre(3, 3, 4));
  EXPECT_THAT(block.groups, IsEmpty());
  EXPECT_THAT(block.keys_of(0), ElementsAre(7, UINT64_MAX, 9));
  EXPECT_THAT(block.values_of(2), ElementsAre(1));

  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "one 1:1"), "1: the label is no number");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 a:1"), "3: a key must be a whole number");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 -4:1"), "3: a key must be a whole number");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 18446744073709551616:1"), "3: a key above 2^64-1");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 2:1 3"), "8: a key without ':' and a value");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 3:"), "5: the value of key 3 is no number");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 3: 4"), "5: the value of key 3 is no number");
  EXPECT_EQ(complaint(ExampleFormat::kLibsvm, "1 3:4,5:6"), "5: the value of key 3 is no number");
}

// Lines of the usual form are read by another road than the others; both must give the same.
TEST(ParserLibsvm, UsualAndOtherLinesMeanTheSame) {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string usual = "1";
    std::string other = "1";
    for (uint64_t left = random.below(40); left > 0; --left) {
      const uint64_t key = random.next() >> random.below(64);
      std::string value = std::to_string(random.below(100000) >> random.below(17));
      if (random.below(2) > 0) value.insert(random.below(value.size() + 1), ".");
      usual += fmt::format(" {}:{}", key, value);
      other += fmt::format("{}{}:{}", random.below(2) > 0 ? "  " : "\t", key, value);
    }
    other += random.below(2) > 0 ? " # comment" : " ";
    const char* const end = random.below(2) > 0 ? "\n" : random.below(2) > 0 ? " \r\n" : "\r\n";
    const Parsed one = parse(ExampleFormat::kLibsvm, usual + end);
    const Parsed two = parse(ExampleFormat::kLibsvm, other + end);
    ASSERT_EQ(one.bad.count, 0u) << usual;
    ASSERT_EQ(two.bad.count, 0u) << other;
    ASSERT_EQ(one.block.keys, two.block.keys) << usual;
    ASSERT_EQ(one.block.values, two.block.values) << usual;
    ASSERT_EQ(one.block.ends, two.block.ends);
  }
}

TEST(ParserLibsvm, AlmostUsualLinesAreWrong) {
  for (const std::string line : {"1 1.5:2", "1 1:2:3", "1 :2", "1 1:", "1 1:.", "1 1:1.2.3", "1 1 2", "1 12345678.9:1",
                                 "1:2 3", "1 1:2\r3", "+-1", "-", "1-", "1 1", "1.2.3 1:1"}) {
    const Parsed parsed = parse(ExampleFormat::kLibsvm, "1 1:1\n" + line + "\n2 2:2\n");
    EXPECT_EQ(parsed.bad.count, 1u) << line;
    EXPECT_THAT(parsed.block.labels, ElementsAre(1, 2)) << line;
    EXPECT_THAT(parsed.block.keys, ElementsAre(1, 2)) << line;
    EXPECT_THAT(parsed.block.values, ElementsAre(1, 2)) << line;
    EXPECT_THAT(parsed.block.ends, ElementsAre(1, 2)) << line;
  }
}

TEST(ParserLibsvm, LabelsMayHaveASign) {
  const auto [block, bad] = parse(ExampleFormat::kLibsvm, "-1 1:1\n+1 2:1\n-.5\n-123456 3:1\n12345678 4:1\n1e3 5:1\n");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(-1, 1, -0.5f, -123456, 12345678, 1000));
  EXPECT_THAT(block.ends, ElementsAre(1, 2, 2, 3, 4, 5));
}

// Text is taken in pieces: lines that begin in one and end in the next, and lines longer than several.
TEST(ParserLibsvm, LinesMayHaveAnyLength) {
  Random random(12);
  std::string text;
  std::vector<Key> keys;
  std::vector<size_t> ends;
  for (int row = 0; row < 300; ++row) {
    text += "1";
    for (uint64_t left = row % 100 == 50 ? 20000 : random.below(100); left > 0; --left) {
      keys.push_back(random.next() >> random.below(64));
      text += fmt::format(" {}:1", keys.back());
    }
    text += row % 7 == 0 ? " # unusual\n" : "\n";
    ends.push_back(keys.size());
  }
  const auto [block, bad] = parse(ExampleFormat::kLibsvm, text);
  EXPECT_EQ(bad.count, 0u);
  EXPECT_EQ(block.keys, keys);
  EXPECT_EQ(block.ends, ends);
  EXPECT_EQ(block.values, std::vector<float>(keys.size(), 1));
}

TEST(Parser, Adfea) {
  const auto [block, bad] = parse(ExampleFormat::kAdfea, "id1 1 1 5:2 6:2 7:3\n id2 1 0 8:0\n");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, -1));
  EXPECT_THAT(block.keys, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(block.groups, ElementsAre(2, 2, 3, 0));
  EXPECT_THAT(block.values, IsEmpty());
  EXPECT_THAT(parse(ExampleFormat::kAdfea, "id 1 1 5:2", true).block.groups, IsEmpty());

  EXPECT_EQ(complaint(ExampleFormat::kAdfea, "5 1"), "4: the third word must be the label, a number");
  EXPECT_EQ(complaint(ExampleFormat::kAdfea, "5 1 1 7"), "8: a key without ':' and a group");
  EXPECT_EQ(complaint(ExampleFormat::kAdfea, "5 1 1 7:4096"), "9: a group must be below 4096");
}

TEST(Parser, Terafea) {
  const auto [block, bad] = parse(ExampleFormat::kTerafea, "1 77 | 18014398509481985 3\n0 78 |\n");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, -1));
  EXPECT_THAT(block.keys, ElementsAre(18014398509481985, 3));
  EXPECT_THAT(block.groups, ElementsAre(1, 0));
  EXPECT_THAT(block.ends, ElementsAre(2, 2));
  EXPECT_EQ(complaint(ExampleFormat::kTerafea, "1 77 5 6"), "9: no '|' before the keys");
}

TEST(Parser, GroupsOfSparseAndDense) {
  const auto binary = parse(ExampleFormat::kSparseBinary, "1; 3 10 11; 4 12;\n0;\n-1; 5 ;6 13");
  EXPECT_EQ(binary.bad.count, 0u);
  EXPECT_THAT(binary.block.labels, ElementsAre(1, -1, -1));
  EXPECT_THAT(binary.block.keys, ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(binary.block.groups, ElementsAre(3, 3, 4, 6));
  EXPECT_THAT(binary.block.values, IsEmpty());

  const auto sparse = parse(ExampleFormat::kSparse, "1; 3 10:.5 11:2; 4 12:-1");
  EXPECT_THAT(sparse.block.keys, ElementsAre(10, 11, 12));
  EXPECT_THAT(sparse.block.values, ElementsAre(0.5, 2, -1));

  const auto dense = parse(ExampleFormat::kDense, "1; 1 0.5 2; 2 7");
  EXPECT_THAT(dense.block.keys, ElementsAre(uint64_t{1} << 32, (uint64_t{1} << 32) + 1, uint64_t{2} << 32));
  EXPECT_THAT(dense.block.values, ElementsAre(0.5, 2, 7));

  EXPECT_EQ(complaint(ExampleFormat::kSparse, "1; 3 10"), "8: a key without ':' and a value");
  EXPECT_EQ(complaint(ExampleFormat::kSparseBinary, "1; 3 10:5"), "8: features must be apart");
  EXPECT_EQ(complaint(ExampleFormat::kSparseBinary, "1 3 10"), "3: the label must be followed by ';'");
  EXPECT_EQ(complaint(ExampleFormat::kSparseBinary, "1; x 10"), "4: a group must be below 4096");
}

TEST(Parser, Criteo) {
  std::string line = "1\t0\t-1";
  for (int i = 2; i < 13; ++i) line += "\t";
  line += "\t68fd1e64\tabcd";
  for (int i = 2; i < 26; ++i) line += "\t";
  const auto [block, bad] = parse(ExampleFormat::kCriteo, line);
  EXPECT_EQ(bad.count, 0u) << bad.first[0].reason;
  EXPECT_THAT(block.labels, ElementsAre(1));
  EXPECT_THAT(block.keys, ElementsAre(0, 1418980313362273200, 1233128445504940974));
  EXPECT_THAT(block.groups, ElementsAre(1, 2, 14));
  EXPECT_THAT(complaint(ExampleFormat::kCriteo, "1\t2\t3"), HasSubstr("2 columns behind the label instead of 39"));
  EXPECT_THAT(complaint(ExampleFormat::kCriteo, line + "\tmore"), HasSubstr("more than 39 columns"));
  EXPECT_THAT(complaint(ExampleFormat::kCriteo, "1\tx" + line.substr(3)), HasSubstr("a count is no whole number"));
}

TEST(Parser, Murmur3GivesTheKeysOfOldModels) {
  EXPECT_EQ(murmur3("80e26c9b", 512927377), 9465419651991975025u);
  EXPECT_EQ(murmur3("fb936136", 512927377), 15578302193590252556u);
  EXPECT_EQ(murmur3("7b4723c4", 512927377), 2734079988630577406u);
  EXPECT_EQ(murmur3("25c83c98", 512927377), 7166875442351384184u);
  EXPECT_EQ(murmur3("a73ee510", 512927377), 10073976726243077594u);
}

TEST(Parser, Vw) {
  const auto [block, bad] = parse(ExampleFormat::kVw, "1 1.0 'tag|a x y:2 |b:0.5 x:3\n-1 | x\n0 1 0 name|a x\n");
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, -1, 0));
  EXPECT_THAT(block.values, ElementsAre(1, 2, 1.5, 1, 1));
  EXPECT_THAT(block.ends, ElementsAre(3, 4, 5));
  EXPECT_NE(block.keys[0], block.keys[1]);
  EXPECT_NE(block.keys[0], block.keys[2]);  // another namespace
  EXPECT_NE(block.keys[0], block.keys[3]);
  EXPECT_EQ(block.keys[0], block.keys[4]);
  EXPECT_EQ(complaint(ExampleFormat::kVw, "1 x:1"), "6: no '|' before the features");
  EXPECT_EQ(complaint(ExampleFormat::kVw, "1 | x:y"), "7: what follows 'x:' is no number");
}

TEST(Parser, WhereExamplesKeepTheirPlacesABadLineIsOneWithoutALabel) {
  for (const ExampleFormat format : {ExampleFormat::kLibsvm, ExampleFormat::kVw}) {
    const std::string text = format == ExampleFormat::kVw ? "1 |a x\nbad\n-1 |a y\n" : "1 1:1\n1 2:2 bad\n-1 5:5\n";
    const auto [block, bad] = parse(format, text, false, Labels::kMayLack);
    EXPECT_EQ(bad.count, 1u);
    EXPECT_THAT(block.labels, ElementsAre(1, testing::IsNan(), -1));
    EXPECT_THAT(block.ends, ElementsAre(1, 1, 2));
    EXPECT_EQ(block.values.size(), 2u);
  }
}

TEST(Parser, VwLearnsFromNoLineThatIsNotWhatItSeems) {
  EXPECT_EQ(complaint(ExampleFormat::kVw, "1 2.5 |a x"), "3: an importance of 2.5: there are none here but 1");
  EXPECT_EQ(complaint(ExampleFormat::kVw, "1 1 0.5 'tag|a x"), "5: a base of 0.5: there is none here but 0");
  EXPECT_EQ(complaint(ExampleFormat::kVw, "1 word |a x"), "3: what follows the label is no number");
  EXPECT_EQ(complaint(ExampleFormat::kVw, "word |a x"), "1: the label is no number");
  for (const char* line : {"|a x", "'tag |a x", "tag|a x"}) {
    EXPECT_EQ(complaint(ExampleFormat::kVw, line), "1: no label");
    const auto [block, bad] = parse(ExampleFormat::kVw, line, false, Labels::kMayLack);
    EXPECT_EQ(bad.count, 0u) << line;
    EXPECT_THAT(block.labels, ElementsAre(0)) << line;
  }
}

}  // namespace
}  // namespace pscloud
