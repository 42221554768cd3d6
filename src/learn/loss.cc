#include "learn/loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

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

Paid logit(float label, float score) {
  const float t = label > 0 ? score : -score;
  // exp of what is not positive never overflows.
  const float e = std::exp(-std::abs(t));
  const float loss = std::max(-t, 0.0f) + std::log1p(e);
  const float wrong = (t > 0 ? e : 1.0f) / (1 + e);  // 1 / (1 + exp(t))
  return {loss, label > 0 ? -wrong : wrong};
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
    case Loss::kLogit: return over_all(logit, labels, scores, slopes);
    case Loss::kHinge: return over_all(hinge, labels, scores, slopes);
    case Loss::kSquareHinge: return over_all(square_hinge, labels, scores, slopes);
  }
  CHECK(false, "loss {}", static_cast<int>(loss));
}

}  // namespace pscloud
