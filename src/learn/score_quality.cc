#include "learn/score_quality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr int kScoreBits = 33;        // of a score, and one for the kind
constexpr size_t kComparedMax = 256;  // so few are sorted faster by comparing them

// Some bits at a time from the lowest: a processor cannot predict how comparisons end.
void sort_scores(std::vector<uint64_t>& order) {
  if (order.size() <= kComparedMax) {
    std::ranges::sort(order);
    return;
  }
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  std::vector<uint64_t> aside(order.size());
  for (int shift = 0; shift < kScoreBits; shift += kDigitBits) {
    const auto digit_of = [shift](uint64_t score) { return (score >> shift) % kDigits; };
    std::array<size_t, kDigits> places{};
    for (const uint64_t score : order) ++places[digit_of(score)];
    size_t before = 0;
    for (size_t& place : places) before += std::exchange(place, before);
    for (const uint64_t score : order) aside[places[digit_of(score)]++] = score;
    order.swap(aside);
  }
}

}  // namespace

double auc(std::span<const float> labels, std::span<const float> scores) {
  CHECK(labels.size() == scores.size(), "{} labels, {} scores", labels.size(), scores.size());
  // The score, then one bit for the kind: whole numbers are sorted fastest.
  std::vector<uint64_t> order;
  order.reserve(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    // What is no number has no place in an order: it gets the worst.
    const float worst = std::copysign(std::numeric_limits<float>::infinity(), labels[i] > 0 ? -1.0f : 1.0f);
    const float score = std::isnan(scores[i]) ? worst : scores[i];
    order.push_back(uint64_t{ordered_bits(score)} << 1 | (labels[i] > 0 ? 1 : 0));
  }
  sort_scores(order);

  // Whole numbers: pairs in which the first kind wins count two, equal scores one.
  uint64_t wins = 0;
  uint64_t first_kind = 0;
  uint64_t others = 0;
  for (size_t i = 0; i < order.size();) {
    uint64_t first_kind_here = 0;
    uint64_t here = 0;
    const uint64_t score = order[i] >> 1;
    for (; i < order.size() && order[i] >> 1 == score; ++i, ++here) first_kind_here += order[i] & 1;
    const uint64_t others_here = here - first_kind_here;
    wins += first_kind_here * (2 * others + others_here);
    first_kind += first_kind_here;
    others += others_here;
  }
  if (first_kind == 0 || others == 0) return 0.5;
  return static_cast<double>(wins) / (2.0 * static_cast<double>(first_kind) * static_cast<double>(others));
}

uint64_t count_right(std::span<const float> labels, std::span<const float> scores) {
  CHECK(labels.size() == scores.size(), "{} labels, {} scores", labels.size(), scores.size());
  uint64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += (labels[i] > 0 ? scores[i] > 0 : scores[i] <= 0) ? 1 : 0;
  return right;
}

}  // namespace pscloud
