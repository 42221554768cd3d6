#include "pscloud/updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/random.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::unique_ptr<Updater> make_valid(const UpdaterSpec& spec) {
  auto updater = UpdaterCatalog().make(spec);
  EXPECT_TRUE(updater.has_value()) << updater.error().message;
  return *std::move(updater);
}

// The value of one float after each gradient, from 0 and zero state.
std::vector<float> values_after(const UpdaterSpec& spec, const std::vector<float>& gradients) {
  const auto updater = make_valid(spec);
  float value = 0;
  std::vector<float> state(updater->state_width(1)), values;
  for (const float gradient : gradients) {
    updater->update({&value, 1}, state, {&gradient, 1});
    values.push_back(value);
  }
  return values;
}

std::vector<float> some_gradients() {
  Random random(7);
  std::vector<float> gradients(50);
  for (float& gradient : gradients) gradient = random.normal(0.3f, 2);
  gradients[10] = 0;
  return gradients;
}

void expect_close(const std::vector<float>& values, const std::vector<double>& expected, double relative) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], relative * std::abs(expected[i]) + 1e-7) << "step " << i;
}

TEST(Updater, AddAddsAndAssignAssigns) {
  EXPECT_EQ(values_after({"add", {}}, {1, 2, -4}), (std::vector<float>{1, 3, -1}));
  EXPECT_EQ(values_after({"assign", {}}, {1, 2, -4}), (std::vector<float>{1, 2, -4}));
}

TEST(Updater, SgdFollowsItsFormula) {
  double w = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) expected.push_back(w -= 0.125 * g);
  expect_close(values_after({"sgd", {{"learning_rate", 0.125f}}}, some_gradients()), expected, 1e-5);
}

TEST(Updater, AdagradFollowsItsFormula) {
  double w = 0, n = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) {
    n += g * g;
    expected.push_back(w -= 0.5 * g / (std::sqrt(n) + 0.01));
  }
  const UpdaterSpec spec{"adagrad", {{"learning_rate", 0.5f}, {"epsilon", 0.01f}}};
  expect_close(values_after(spec, some_gradients()), expected, 1e-4);
}

// The least of lambda1*|w| + lambda2/2*w^2 + (w-v)^2/(2*rate) by trying.
double best_near(double v, double rate, double lambda1, double lambda2) {
  const auto cost = [&](double w) {
    return lambda1 * std::abs(w) + lambda2 / 2 * w * w + (w - v) * (w - v) / (2 * rate);
  };
  double best = 0;
  for (double w = -3; w < 3; w += 1e-4) best = cost(w) < cost(best) ? w : best;
  return best;
}

TEST(Updater, PenaltiesMakeTheLeastOfStepAndWeight) {
  double w = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) expected.push_back(w = best_near(w - 0.125 * g, 0.125, 2, 0.5));
  const UpdaterSpec sgd{"sgd", {{"learning_rate", 0.125f}, {"lambda1", 2}, {"lambda2", 0.5f}}};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values_after(sgd, some_gradients())[i], expected[i], 1e-3);

  w = 0;
  double n = 0;
  expected.clear();
  for (const double g : some_gradients()) {
    n += g * g;
    const double rate = 0.5 / (std::sqrt(n) + 0.01);
    expected.push_back(w = best_near(w - rate * g, rate, 1, 0.5));
  }
  const UpdaterSpec adagrad{"adagrad",
                            {{"learning_rate", 0.5f}, {"epsilon", 0.01f}, {"lambda1", 1}, {"lambda2", 0.5f}}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(values_after(adagrad, some_gradients())[i], expected[i], 1e-3);
  }
  EXPECT_TRUE(std::ranges::any_of(expected, [](double value) { return value == 0; }));
}

TEST(Updater, FtrlWithoutDecayKeepsItsRate) {
  // As the original's with a constant rate of alpha: w = proximal(-alpha * z), z being less (s'-s)/alpha*w each time.
  double w = 0, z = 0, s = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) {
    const double s_before = std::exchange(s, std::sqrt(s * s + g * g));
    z += g - (s - s_before) / 0.5 * w;
    expected.push_back(w = std::abs(z) <= 0.25 ? 0 : -0.5 * (z - std::copysign(0.25, z)) / (1 + 0.5 * 0.125));
  }
  const UpdaterSpec spec{"ftrl", {{"alpha", 0.5f}, {"beta", 1}, {"lambda1", 0.25f}, {"lambda2", 0.125f}, {"decay", 0}}};
  expect_close(values_after(spec, some_gradients()), expected, 1e-4);
}

TEST(Updater, AdamFollowsItsFormula) {
  double w = 0, m = 0, v = 0;
  int t = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) {
    ++t;
    m = 0.75 * m + 0.25 * g;
    v = 0.875 * v + 0.125 * g * g;
    w -= 0.5 * (m / (1 - std::pow(0.75, t))) / (std::sqrt(v / (1 - std::pow(0.875, t))) + 1e-3);
    expected.push_back(w);
  }
  const UpdaterSpec spec{"adam", {{"learning_rate", 0.5f}, {"beta1", 0.75f}, {"beta2", 0.875f}, {"epsilon", 1e-3f}}};
  expect_close(values_after(spec, some_gradients()), expected, 1e-4);
}

TEST(Updater, AdamStepsAreOfTheLearningRateFromTheFirstOn) {
  // With the default betas and one gradient again and again, both corrected means are that gradient and its square.
  const auto values = values_after({"adam", {}}, std::vector<float>(100, 3.0f));
  EXPECT_NEAR(values[0], -0.001, 1e-6);
  EXPECT_NEAR(values[99], -0.1, 1e-4);
}

TEST(Updater, FtrlFollowsItsFormula) {
  const double alpha = 0.5, beta = 2, lambda1 = 1.5, lambda2 = 0.25;
  double w = 0, z = 0, n = 0;
  std::vector<double> expected;
  for (const double g : some_gradients()) {
    const double sigma = (std::sqrt(n + g * g) - std::sqrt(n)) / alpha;
    z += g - sigma * w;
    n += g * g;
    w = std::abs(z) <= lambda1 ? 0 : -(z - std::copysign(lambda1, z)) / ((beta + std::sqrt(n)) / alpha + lambda2);
    expected.push_back(w);
  }
  const UpdaterSpec spec{"ftrl", {{"alpha", 0.5f}, {"beta", 2}, {"lambda1", 1.5f}, {"lambda2", 0.25f}}};
  expect_close(values_after(spec, some_gradients()), expected, 1e-4);
}

TEST(Updater, FtrlAgreesWithTheOriginalParameterServer) {
  // Printed by the dmlc parameter server's FTRL entry.
  const UpdaterSpec ctr{"ftrl", {{"alpha", 0.01f}, {"beta", 10}, {"lambda1", 10}, {"lambda2", 1}}};
  const auto w = values_after(ctr, {-30, -20, 15, -5});
  const float expected[] = {.00499875031f, .00934039307f, .00628299024f, .00729554512f};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(w[i], expected[i], 2e-9) << i;

  const UpdaterSpec ones{"ftrl", {{"alpha", 1}, {"beta", 1}, {"lambda1", 1}, {"lambda2", 0}}};
  const auto v = values_after(ones, {-1.5f, -.5f, 2});
  EXPECT_NEAR(v[0], .2, 1e-7);
  EXPECT_NEAR(v[1], .393712943, 1e-7);
  EXPECT_EQ(v[2], 0);
}

TEST(Updater, FtrlKeepsZAndTheRootOfTheSumOfSquares) {
  const auto updater = make_valid({"ftrl", {{"alpha", 0.01f}, {"beta", 10}, {"lambda1", 10}, {"lambda2", 1}}});
  float value = 0;
  std::vector<float> state(2);
  const float z[] = {-30, -53.0269996f, -40.8251345f, -46.0254305f};  // of the same run
  double n = 0;
  size_t i = 0;
  for (const float g : {-30.f, -20.f, 15.f, -5.f}) {
    updater->update({&value, 1}, state, {&g, 1});
    n += static_cast<double>(g) * g;
    EXPECT_NEAR(state[0], z[i++], 1e-5);
    EXPECT_NEAR(state[1], std::sqrt(n), 1e-5);
  }
}

TEST(Updater, FtrlWithoutRegularisationTakesAGradientOfZero) {
  // beta 0 and no squares yet: the step size would be infinite.
  EXPECT_EQ(values_after({"ftrl", {{"beta", 0}}}, {0, 0}), (std::vector<float>{0, 0}));
}

class EachUpdater : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, EachUpdater, testing::Values("add", "assign", "sgd", "adagrad", "adam", "ftrl"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(EachUpdater, ManyRowsAtOnceAreTheSameBitsAsRowByRow) {
  const auto updater = make_valid({GetParam(), {}});
  Random random(7);
  for (const size_t width : {1, 2, 3, 7, 16, 33}) {
    for (const size_t rows : {0, 1, 2, 5, 64, 100}) {
      const size_t state_floats = updater->state_width(width);
      std::vector<float> values(rows * width), states(rows * state_floats), pushed(rows * width);
      for (float& value : values) value = random.normal(0, 1);
      auto single_values = values;
      auto single_states = states;
      for (int push = 0; push < 3; ++push) {
        for (float& gradient : pushed) gradient = random.normal(0, 1);
        updater->update_rows(values.data(), states.data(), pushed.data(), rows, width);
        for (size_t row = 0; row < rows; ++row) {
          updater->update({single_values.data() + row * width, width},
                          {single_states.data() + row * state_floats, state_floats},
                          {pushed.data() + row * width, width});
        }
      }
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(single_values[i]));
      for (size_t i = 0; i < states.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(states[i]), std::bit_cast<uint32_t>(single_states[i]));
    }
  }
}

// One float of each updater, written down once more. Compiled here as it stands: without vectors, nothing contracted.
float scalar_update(const std::string& updater, float value, float* state, float g) {
  if (updater == "add") return value + g;
  if (updater == "assign") return g;
  if (updater == "sgd") return value - 0.01f * g;
  if (updater == "adagrad") {
    state[0] = state[0] + g * g;
    return value - 0.01f / (std::sqrt(state[0]) + 1e-8f) * g;
  }
  if (updater == "adam") {
    state[2] += 1;
    const auto rate = static_cast<float>(0.001f / (1 - std::pow(static_cast<double>(0.9f), state[2])));
    const auto v_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(0.999f), state[2])));
    state[0] = 0.9f * state[0] + (1 - 0.9f) * g;
    state[1] = 0.999f * state[1] + (1 - 0.999f) * g * g;
    return value - rate * state[0] / (std::sqrt(state[1] * v_scale) + 1e-8f);
  }
  EXPECT_EQ(updater, "ftrl");
  const float s = std::sqrt(state[1] * state[1] + g * g);
  const float z = state[0] + (g - (s - state[1]) / 0.1f * value);
  state[0] = z;
  state[1] = s;
  return z == 0 ? 0.0f : (std::copysign(0.0f, z) - z) / ((1 + s) / 0.1f + 0);
}

TEST_P(EachUpdater, VectorsOfThisMachineGiveTheBitsOfAScalarLoop) {
  const std::string name = GetParam();
  const auto updater = make_valid({name, {}});
  const size_t state_floats = updater->state_width(1);
  Random random(11);
  for (size_t rows = 1; rows < 70; ++rows) {  // all remainders of all vector lengths
    std::vector<float> values(rows), states(rows * state_floats), pushed(rows);
    for (float& value : values) value = random.normal(0, 1);
    auto scalar_values = values;
    auto scalar_states = states;
    for (int push = 0; push < 4; ++push) {
      for (float& gradient : pushed)
        gradient = random.normal(0, 1) * std::exp2(static_cast<float>(random.below(30)) - 15);
      updater->update_rows(values.data(), states.data(), pushed.data(), rows, 1);
      for (size_t i = 0; i < rows; ++i)
        scalar_values[i] = scalar_update(name, scalar_values[i], scalar_states.data() + i * state_floats, pushed[i]);
    }
    for (size_t i = 0; i < rows; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(scalar_values[i])) << i << " of " << rows;
    for (size_t i = 0; i < states.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(states[i]), std::bit_cast<uint32_t>(scalar_states[i])) << i << " of " << rows;
  }
}

TEST(Updater, GradientsWhoseSquaresAreNotFiniteLeaveRowsThatAre) {
  for (const UpdaterSpec& spec : {UpdaterSpec{"ftrl", {}}, UpdaterSpec{"ftrl", {{"decay", 0}, {"lambda1", 1}}},
                                  UpdaterSpec{"adagrad", {}}, UpdaterSpec{"adam", {}}}) {
    const auto updater = make_valid(spec);
    float value = 0;
    std::vector<float> state(updater->state_width(1));
    for (const float gradient : {1.0f, 3e38f, 3e38f, -3e38f, 2e19f, -1.0f, 3e38f, -3e38f, -3e38f, 0.0f}) {
      updater->update({&value, 1}, state, {&gradient, 1});
      EXPECT_TRUE(std::isfinite(value)) << spec.name << " after " << gradient;
      for (const float one : state) EXPECT_TRUE(std::isfinite(one)) << spec.name << " after " << gradient;
    }
  }
}

TEST_P(EachUpdater, RefusesANumberItDoesNotKnow) {
  const auto updater = UpdaterCatalog().make({GetParam(), {{"momentum", 0.9f}}});
  ASSERT_FALSE(updater.has_value());
  EXPECT_EQ(updater.error().code, Code::kInvalid);
  EXPECT_THAT(updater.error().message, HasSubstr("no number called momentum; it has"));
}

TEST(UpdaterCatalog, NumbersOutOfRangeOrTwiceAreRefused) {
  const auto refusal = [](const UpdaterSpec& spec) {
    const auto updater = UpdaterCatalog().make(spec);
    return updater ? "" : updater.error().message;
  };
  EXPECT_EQ(refusal({"sgd", {{"learning_rate", 0}}}), "learning_rate of updater sgd is 0, must be above 0");
  EXPECT_THAT(refusal({"adam", {{"beta1", 1}}}), HasSubstr("0 or more and below 1"));
  EXPECT_THAT(refusal({"ftrl", {{"lambda1", -1}}}), HasSubstr("0 or more"));
  EXPECT_THAT(refusal({"ftrl", {{"alpha", NAN}}}), HasSubstr("alpha of updater ftrl is nan"));
  EXPECT_THAT(refusal({"ftrl", {{"beta", 1}, {"beta", 2}}}), HasSubstr("twice"));
  EXPECT_THAT(refusal({"ftrl", {{"l1", 1}}}), HasSubstr("it has alpha beta lambda1 lambda2 decay"));
}

TEST(UpdaterCatalog, UnknownUpdaterListsTheKnownOnes) {
  const auto updater = UpdaterCatalog().make({"ftrll", {}});
  ASSERT_FALSE(updater.has_value());
  EXPECT_EQ(updater.error().code, Code::kNotFound);
  EXPECT_THAT(updater.error().message, HasSubstr("adagrad adam add assign ftrl sgd"));
}

// A user's own: the largest of all that was pushed.
class Largest : public Updater {
  void update(std::span<float> value, std::span<float>, std::span<const float> pushed) const override {
    for (size_t i = 0; i < value.size(); ++i) value[i] = std::max(value[i], pushed[i]);
  }
};

TEST(UpdaterCatalog, UsersOwnUpdaterNeedsOnlyOneRow) {
  UpdaterCatalog catalog;
  catalog.add("largest",
              [](const UpdaterSpec&) -> Result<std::unique_ptr<Updater>> { return std::make_unique<Largest>(); });
  const auto updater = catalog.make({"largest", {}});
  ASSERT_TRUE(updater.has_value());
  std::vector<float> values{1, 2, 3, 4};
  const std::vector<float> pushed{0, 5, 9, 0};
  (*updater)->update_rows(values.data(), nullptr, pushed.data(), 2, 2);
  EXPECT_EQ(values, (std::vector<float>{1, 5, 9, 4}));
}

// What one whose weights were set makes of a gradient of 0 is these weights, but for rounding: of z, which has lambda1.
TEST(Updater, TheStateOfASetValueGivesItBack) {
  const UpdaterCatalog catalog;
  for (const UpdaterSpec& spec :
       {UpdaterSpec{"ftrl", {{"alpha", 0.3f}, {"lambda1", 2}, {"lambda2", 0.5f}}}, UpdaterSpec{"ftrl", {{"decay", 0}}},
        UpdaterSpec{"adagrad", {}}, UpdaterSpec{"adam", {}}, UpdaterSpec{"sgd", {}}}) {
    const auto updater = catalog.make(spec).value();
    for (const float weight : {-3.5f, -1e-6f, 0.0f, 0.25f}) {
      std::vector<float> value{weight};
      std::vector<float> state(updater->state_width(1), 9.0f);
      updater->state_of(value, state);
      updater->update(value, state, std::vector<float>{0});
      EXPECT_NEAR(value[0], weight, std::abs(weight) * 1e-6 + 2e-7) << spec.name;
    }
  }
}

// The gradient that comes first moves it as far as it moves a weight that began at 0: alpha / beta for small ones.
TEST(Updater, FtrlGoesOnFromASetValue) {
  const auto updater = UpdaterCatalog().make({"ftrl", {{"alpha", 0.1f}, {"beta", 1}, {"lambda1", 1}}}).value();
  std::vector<float> value{2};
  std::vector<float> state(2);
  updater->state_of(value, state);
  updater->update(value, state, std::vector<float>{0.01f});
  EXPECT_NEAR(value[0], 2 - 0.1f * 0.01f / 1.01f, 1e-5);
}

}  // namespace
}  // namespace pscloud
