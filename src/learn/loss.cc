#include "learn/loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "learn/logistic.h"

namespace pscloud {
namespace {

struct Paid {
  double loss;
  float slope;
};

Paid square(float label, float score) {
  const float miss = score - label;
  return {0.5 * miss * miss, miss};
}

Paid hinge(float label, float score) {
  const float y = label > 0 ? 1.0f : -1.0f;
  const float lack = 1 - y * score;
  return lack > 0 ? Paid{lack, -y} : Paid{0, 0};
}

Paid square_hinge(float label, float score) {
  const float y = label > 0 ? 1.0f : -1.0f;
  const float lack = std::max(0.0f, 1 - y * score);
  return {static_cast<double>(lack) * lack, -2 * y * lack};
}

// By margins, in vectors: exponentials and logarithms of single numbers would take longer than the scores do.
double logit(std::span<const float> labels, std::span<const float> scores, std::span<float> slopes) {
  for (size_t i = 0; i < labels.size(); ++i) slopes[i] = labels[i] > 0 ? scores[i] : -scores[i];
  const double loss = logistic_loss(slopes);
  miss_chances(slopes, slopes);
  for (size_t i = 0; i < labels.size(); ++i) slopes[i] = labels[i] > 0 ? -slopes[i] : slopes[i];
  return loss;
}

template <class OfOne>
double over_all(OfOne of_one, std::span<const float> labels, std::span<const float> scores, std::span<float> slopes) {
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const Paid paid = of_one(labels[i], scores[i]);
    sum += paid.loss;
    slopes[i] = paid.slope;
  }
  return sum;
}

}  // namespace

double loss_and_slopes(Loss loss, std::span<const float> labels, std::span<const float> scores,
                       std::span<float> slopes) {
  CHECK(labels.size() == scores.size() && labels.size() == slopes.size(), "{} labels, {} scores, {} slopes",
        labels.size(), scores.size(), slopes.size());
  switch (loss) {
    case Loss::kSquare: return over_all(square, labels, scores, slopes);
    case Loss::kLogit: return logit(labels, scores, slopes);
    case Loss::kHinge: return over_all(hinge, labels, scores, slopes);
    case Loss::kSquareHinge: return over_all(square_hinge, labels, scores, slopes);
  }
  CHECK(false, "loss {}", static_cast<int>(loss));
}

}  // namespace pscloud
