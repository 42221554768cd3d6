#include "data/scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/random.h"

namespace pscloud {
namespace {

// The text, with what may be read behind it.
class Padded {
 public:
  explicit Padded(const std::string& text) : size_(text.size()), text_(text + std::string(kScanPadding, '\n')) {}
  const char* begin() const { return text_.data(); }
  const char* end() const { return text_.data() + size_; }

 private:
  size_t size_;
  std::string text_;
};

TEST(Scan, WholeNumbersOfEveryLength) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t expected = random.next() >> random.below(64);
    const Padded text(std::to_string(expected));
    uint64_t value = 0;
    ASSERT_EQ(scan_u64(text.begin(), value), text.end());
    ASSERT_EQ(value, expected);
  }
}

TEST(Scan, WholeNumbersEndWhereTheirDigitsDo) {
  for (const char* behind : {" ", ":", "\t", "x", ".5", "\xb0", "/", ";"}) {
    const Padded text("12345678901" + std::string(behind));
    uint64_t value = 0;
    EXPECT_EQ(scan_u64(text.begin(), value), text.begin() + 11) << behind;
    EXPECT_EQ(value, 12345678901u);
  }
  uint64_t value = 7;
  for (const char* none : {"", "x", "-1", "+1", " 1", "\xff"})
    EXPECT_EQ(scan_u64(Padded(none).begin(), value), nullptr);
  EXPECT_EQ(value, 7u);
}

TEST(Scan, WholeNumbersAbove64BitsAreNone) {
  uint64_t value = 0;
  const Padded largest("18446744073709551615");
  EXPECT_EQ(scan_u64(largest.begin(), value), largest.end());
  EXPECT_EQ(value, UINT64_MAX);
  for (const char* text :
       {"18446744073709551616", "99999999999999999999", "184467440737095516150", "1000000000000000000000"})
    EXPECT_EQ(scan_u64(Padded(text).begin(), value), nullptr) << text;
  const Padded zeros("000000000000000000000000000042");
  EXPECT_EQ(scan_u64(zeros.begin(), value), zeros.end());
  EXPECT_EQ(value, 42u);
}

void expect_same_float(const std::string& text) {
  const Padded padded(text);
  float value = -7;
  const char* rest = scan_float(padded.begin(), padded.end(), value);
  char* expected_rest = nullptr;
  const float expected = std::strtof(padded.begin(), &expected_rest);
  ASSERT_EQ(rest, expected_rest) << text;
  ASSERT_EQ(value, expected) << text;
  ASSERT_EQ(std::signbit(value), std::signbit(expected)) << text;
}

TEST(Scan, ShortFloatsAreRoundedAsTheLibraryDoes) {
  Random random(3);
  for (int i = 0; i < 200000; ++i) {
    std::string text = std::to_string(random.below(10000000) >> random.below(24));
    if (text.size() < 7 && random.below(4) > 0) text.insert(random.below(text.size() + 1), ".");
    float value = -7;
    ASSERT_TRUE(short_float_of(load_eight(Padded(text + "123").begin()), text.size(), value)) << text;
    ASSERT_EQ(value, std::strtof(text.c_str(), nullptr)) << text;
  }
  for (const std::string text : {".", "..", "1.2.3", ".5.", "1.."}) {
    float value = 0;
    EXPECT_FALSE(short_float_of(load_eight(Padded(text).begin()), text.size(), value)) << text;
  }
}

TEST(Scan, TinyFloatsAreADigitAPointAndOneOrTwoDigits) {
  for (int hundredths = 0; hundredths < 1000; ++hundredths) {
    for (const int count : {3, 4}) {
      const std::string text = fmt::format("{:.2f}", hundredths / 100.0).substr(0, static_cast<size_t>(count));
      float value = -7;
      ASSERT_TRUE(tiny_float_of(load_eight(Padded(text + "9.91").begin()), text.size(), value)) << text;
      ASSERT_EQ(value, std::strtof(text.c_str(), nullptr)) << text;
    }
  }
  for (const std::string text : {"1", "12", "1.", ".12", "123", "1234", "12.3", "1..", "1.2.", "1..2", "1.234"}) {
    float value = 0;
    EXPECT_FALSE(tiny_float_of(load_eight(Padded(text).begin()), text.size(), value)) << text;
  }
}

TEST(Scan, SeparatorsAreAllThatIsInNoNumber) {
  std::string text(256, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i);
  const Padded padded(text);
  for (size_t begin = 0; begin < text.size(); begin += 64) {
    const uint64_t found = separators_in_64(padded.begin() + begin);
    for (size_t i = 0; i < 64; ++i) {
      const char c = text[begin + i];
      EXPECT_EQ((found >> i & 1) != 0, !is_digit(c) && c != '.') << begin + i;
    }
  }
}

TEST(Scan, FloatsAreRoundedAsTheLibraryDoes) {
  Random random(2);
  const auto digits = [&](uint64_t most) {
    std::string text;
    for (uint64_t n = random.below(most + 1); n > 0; --n) text += static_cast<char>('0' + random.below(10));
    return text;
  };
  for (int i = 0; i < 50000; ++i) {
    std::string text = random.below(2) ? "-" : "";
    const std::string whole = digits(10), part = digits(10);
    if (whole.empty() && part.empty()) continue;
    text += whole.empty() ? "0" : whole;
    if (random.below(2)) text += "." + part;
    if (random.below(8) == 0) text += "e" + std::to_string(static_cast<int>(random.below(58)) - 30);
    expect_same_float(text);
    if (HasFatalFailure()) return;
  }
  for (const char* text : {"0", "-0", "1", "1.", "16777216", "16777217", "0.1", "1e38", "1e-46", "3.4028235e38",
                           "1e-40", "0.00000001", "1.5x", "2 3", "1,5"})
    expect_same_float(text);
}

TEST(Scan, WhatIsNoFloat) {
  float value = 0;
  for (const char* text : {"", "x", "-", ".", "e5", "--1", "+-1", "inf", "-inf", "nan", "1e39", "-1e39"}) {
    const Padded padded(text);
    EXPECT_EQ(scan_float(padded.begin(), padded.end(), value), nullptr) << text;
  }
  const Padded plus("+1.5");
  EXPECT_EQ(scan_float(plus.begin(), plus.end(), value), plus.end());
  EXPECT_EQ(value, 1.5f);
}

}  // namespace
}  // namespace pscloud
