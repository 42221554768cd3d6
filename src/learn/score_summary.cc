#include "learn/score_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "learn/score_quality.h"

namespace pscloud {
namespace {

// Of a float32: its sign, its exponent and eleven bits more.
constexpr int kBits = 20;
// Places in a tally; of each bucket there are two.
enum SummaryPlace : uint32_t { kSumExamples, kSumRight, kSumLoss, kSumBuckets };
static_assert(ScoreSummary::kPlaces == kSumBuckets + (2u << kBits));
// -ln(1e-15): one example that a model is certain of, and wrong about, must not make the mean infinite.
constexpr double kLossMax = 34.538776394910684;

// Sums of losses are whole numbers of these: they are exact, so that it does not matter whose comes first.
constexpr double kLossUnit = 0x1p-20;

uint32_t bucket_of(float score) { return ordered_bits(score) >> (32 - kBits); }

}  // namespace

ScoreSummary::ScoreSummary() : buckets_(size_t{1} << kBits) {}

void ScoreSummary::add(std::span<const float> labels, std::span<const float> scores) {
  CHECK(labels.size() == scores.size(), "{} labels, {} scores", labels.size(), scores.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool first_kind = labels[i] > 0;
    const float worst = std::numeric_limits<float>::infinity() * (first_kind ? -1.0f : 1.0f);
    const float score = std::isnan(scores[i]) ? worst : scores[i];
    Bucket& bucket = buckets_[bucket_of(score)];
    ++(first_kind ? bucket.first_kind : bucket.others);
    const double t = first_kind ? score : -score;
    loss_ += std::min(kLossMax, std::max(-t, 0.0) + std::log1p(std::exp(-std::abs(t))));
  }
  examples_ += labels.size();
  right_ += count_right(labels, scores);
}

void ScoreSummary::add(const ScoreSummary& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].first_kind += other.buckets_[i].first_kind;
    buckets_[i].others += other.buckets_[i].others;
  }
  examples_ += other.examples_;
  right_ += other.right_;
  loss_ += other.loss_;
}

std::vector<Addend> ScoreSummary::addends() const {
  std::vector<Addend> addends = {{kSumExamples, static_cast<double>(examples_)},
                                 {kSumRight, static_cast<double>(right_)},
                                 {kSumLoss, std::round(loss_ / kLossUnit) * kLossUnit}};
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    if (bucket.first_kind > 0) addends.push_back({kSumBuckets + 2 * i, static_cast<double>(bucket.first_kind)});
    if (bucket.others > 0) addends.push_back({kSumBuckets + 2 * i + 1, static_cast<double>(bucket.others)});
  }
  return addends;
}

void ScoreSummary::add_sums(uint32_t first, std::span<const double> sums) {
  CHECK(first <= kPlaces && sums.size() <= kPlaces - first, "{} sums from {}", sums.size(), first);
  for (uint32_t i = 0; i < sums.size(); ++i) {
    const auto count = static_cast<uint64_t>(sums[i]);
    switch (const uint32_t place = first + i) {
      case kSumExamples: examples_ += count; break;
      case kSumRight: right_ += count; break;
      case kSumLoss: loss_ += sums[i]; break;
      default: {
        Bucket& bucket = buckets_[(place - kSumBuckets) / 2];
        ((place - kSumBuckets) % 2 == 0 ? bucket.first_kind : bucket.others) += count;
      }
    }
  }
}

double ScoreSummary::auc() const {
  double wins = 0;
  double first_kind = 0;
  double others = 0;
  for (const Bucket& bucket : buckets_) {
    const auto here = static_cast<double>(bucket.others);
    wins += static_cast<double>(bucket.first_kind) * (others + here / 2);
    first_kind += static_cast<double>(bucket.first_kind);
    others += here;
  }
  return first_kind == 0 || others == 0 ? 0.5 : wins / first_kind / others;
}

double ScoreSummary::accuracy() const {
  return examples_ == 0 ? 0 : static_cast<double>(right_) / static_cast<double>(examples_);
}

double ScoreSummary::logloss() const { return examples_ == 0 ? 0 : loss_ / static_cast<double>(examples_); }

}  // namespace pscloud
