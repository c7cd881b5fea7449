// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Derivatives of scalar regions against finite differences: both are evaluated on the host, in double.
#include "compiler/Differentiate/ScalarDerivative.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace weft;

namespace {

using Values = llvm::DenseMap<Value, double>;

double evaluate(Operation *op, const Values &values) {
  auto at = [&](unsigned i) { return values.lookup(op->getOperand(i)); };
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::ConstantOp>([](auto c) { return cast<FloatAttr>(c.getValue()).getValueAsDouble(); })
      .Case<arith::AddFOp>([&](auto) { return at(0) + at(1); })
      .Case<arith::SubFOp>([&](auto) { return at(0) - at(1); })
      .Case<arith::MulFOp>([&](auto) { return at(0) * at(1); })
      .Case<arith::DivFOp>([&](auto) { return at(0) / at(1); })
      .Case<arith::NegFOp>([&](auto) { return -at(0); })
      .Case<arith::MaximumFOp>([&](auto) { return std::max(at(0), at(1)); })
      .Case<arith::MinimumFOp>([&](auto) { return std::min(at(0), at(1)); })
      .Case<arith::CmpFOp>([&](arith::CmpFOp c) {
        switch (c.getPredicate()) {
        case arith::CmpFPredicate::OGT:
          return double(at(0) > at(1));
        case arith::CmpFPredicate::OLT:
          return double(at(0) < at(1));
        case arith::CmpFPredicate::OEQ:
          return double(at(0) == at(1));
        default:
          ADD_FAILURE() << "a predicate that the test does not know";
          return 0.0;
        }
      })
      .Case<arith::SelectOp>([&](auto) { return at(0) ? at(1) : at(2); })
      .Case<math::ExpOp>([&](auto) { return std::exp(at(0)); })
      .Case<math::Exp2Op>([&](auto) { return std::exp2(at(0)); })
      .Case<math::ExpM1Op>([&](auto) { return std::expm1(at(0)); })
      .Case<math::LogOp>([&](auto) { return std::log(at(0)); })
      .Case<math::Log2Op>([&](auto) { return std::log2(at(0)); })
      .Case<math::Log10Op>([&](auto) { return std::log10(at(0)); })
      .Case<math::Log1pOp>([&](auto) { return std::log1p(at(0)); })
      .Case<math::TanhOp>([&](auto) { return std::tanh(at(0)); })
      .Case<math::SqrtOp>([&](auto) { return std::sqrt(at(0)); })
      .Case<math::RsqrtOp>([&](auto) { return 1 / std::sqrt(at(0)); })
      .Case<math::AbsFOp>([&](auto) { return std::fabs(at(0)); })
      .Case<math::SinOp>([&](auto) { return std::sin(at(0)); })
      .Case<math::CosOp>([&](auto) { return std::cos(at(0)); })
      .Case<math::ErfOp>([&](auto) { return std::erf(at(0)); })
      .Case<math::PowFOp>([&](auto) { return std::pow(at(0), at(1)); })
      .Case<math::FmaOp>([&](auto) { return at(0) * at(1) + at(2); })
      .Case<math::FloorOp>([&](auto) { return std::floor(at(0)); })
      .Default([](Operation *unknown) {
        ADD_FAILURE() << "an op that the test does not know: " << unknown->getName().getStringRef().str();
        return 0.0;
      });
}

/// A function of %x and %y in f64, whose body is given; it ends in %r.
struct Scalar {
  explicit Scalar(const std::string &body) {
    context.loadDialect<arith::ArithDialect, math::MathDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>("func.func @f(%x: f64, %y: f64) -> f64 {\n" + body + "\nreturn %r : f64\n}",
                                         &context);
    if (module)
      function = *module->getOps<func::FuncOp>().begin();
  }

  Values run(double x, double y) {
    Block &block = function.front();
    Values values{{block.getArgument(0), x}, {block.getArgument(1), y}};
    for (Operation &op : block.without_terminator())
      values[op.getResult(0)] = evaluate(&op, values);
    return values;
  }
  double result(double x, double y) { return run(x, y).lookup(function.front().getTerminator()->getOperand(0)); }

  /// Appends the derivatives; null where they are zero.
  FailureOr<ScalarGradients> differentiate() {
    Block &block = function.front();
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    ImplicitLocOpBuilder b(function.getLoc(), block.getTerminator());
    Value one = arith::ConstantOp::create(b, b.getF64FloatAttr(1));
    return differentiateScalars(b, ops, {{block.getTerminator()->getOperand(0), one}},
                                [](Value value) { return isa<BlockArgument>(value); });
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

class Derivative : public testing::TestWithParam<const char *> {};

TEST_P(Derivative, MatchesFiniteDifferences) {
  Scalar scalar(GetParam());
  ASSERT_TRUE(scalar.module);
  FailureOr<ScalarGradients> found = scalar.differentiate();
  ASSERT_TRUE(succeeded(found));
  unsigned seed = std::random_device()();
  RecordProperty("seed", seed);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(0.3, 1.7);
  for (int i = 0; i < 50; ++i) {
    double x = draw(generator), y = draw(generator), h = 1e-6;
    if (std::fabs(x - y) < 1e-4 || std::fabs(x - 1) < 1e-4 || std::fabs(y - 1) < 1e-4)
      continue; // some of the functions have kinks there
    Values values = scalar.run(x, y);
    auto gradient = [&](unsigned argument) {
      Value value = found->lookup(scalar.function.getArgument(argument));
      return value ? values.lookup(value) : 0.0;
    };
    double dx = (scalar.result(x + h, y) - scalar.result(x - h, y)) / (2 * h);
    double dy = (scalar.result(x, y + h) - scalar.result(x, y - h)) / (2 * h);
    EXPECT_NEAR(gradient(0), dx, 1e-6 * (1 + std::fabs(dx))) << "seed " << seed << " x " << x << " y " << y;
    EXPECT_NEAR(gradient(1), dy, 1e-6 * (1 + std::fabs(dy))) << "seed " << seed << " x " << x << " y " << y;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Derivative,
    testing::Values(
        "%r = arith.addf %x, %y : f64", "%r = arith.subf %x, %y : f64", "%r = arith.mulf %x, %y : f64",
        "%r = arith.divf %x, %y : f64", "%r = arith.negf %y : f64", "%r = arith.maximumf %x, %y : f64",
        "%r = arith.minimumf %x, %y : f64", "%r = math.exp %x : f64", "%r = math.exp2 %x : f64",
        "%r = math.expm1 %x : f64", "%r = math.log %x : f64", "%r = math.log2 %x : f64", "%r = math.log10 %x : f64",
        "%r = math.log1p %x : f64", "%r = math.tanh %x : f64", "%r = math.sqrt %x : f64", "%r = math.rsqrt %x : f64",
        "%r = math.sin %x : f64", "%r = math.cos %x : f64", "%r = math.erf %x : f64", "%r = math.powf %x, %y : f64",
        "%r = math.fma %x, %y, %x : f64", "%d = arith.subf %x, %y : f64\n%r = math.absf %d : f64",
        "%f = math.floor %x : f64\n%r = arith.mulf %f, %y : f64",
        "%c = arith.cmpf ogt, %x, %y : f64\n%m = arith.mulf %x, %x : f64\n%r = arith.select %c, %m, %y : f64",
        // A value used several times, and a chain: x tanh(x / y) + exp(x) / (1 + exp(x)).
        "%q = arith.divf %x, %y : f64\n%t = math.tanh %q : f64\n%a = arith.mulf %x, %t : f64\n%e = math.exp %x : f64\n"
        "%one = arith.constant 1.0 : f64\n%s = arith.addf %one, %e : f64\n%b = arith.divf %e, %s : f64\n"
        "%r = arith.addf %a, %b : f64"));

/// 1 / (1 + exp(-x)) where exp(-x) is infinite in f32, and near 1, where 1 - r cancels.
TEST(ScalarDerivative, LogisticFunction) {
  Scalar logistic("%one = arith.constant 1.0 : f64\n%m = arith.negf %x : f64\n%e = math.exp %m : f64\n"
                  "%s = arith.addf %e, %one : f64\n%r = arith.divf %one, %s : f64");
  FailureOr<ScalarGradients> found = logistic.differentiate();
  ASSERT_TRUE(succeeded(found));
  Value slope = found->lookup(logistic.function.getArgument(0));
  EXPECT_EQ(logistic.run(-1000, 0).lookup(slope), 0);
  EXPECT_EQ(logistic.run(1000, 0).lookup(slope), 0);
  EXPECT_NEAR(logistic.run(40, 0).lookup(slope) / std::exp(-40), 1, 1e-12);
  EXPECT_NEAR(logistic.run(0.5, 0).lookup(slope), 0.2350037122015945, 1e-15);
}

TEST(ScalarDerivative, TiesAndZeros) {
  Scalar relu("%z = arith.constant 0.0 : f64\n%r = arith.maximumf %x, %z : f64");
  FailureOr<ScalarGradients> found = relu.differentiate();
  ASSERT_TRUE(succeeded(found));
  EXPECT_EQ(relu.run(0, 0).lookup(found->lookup(relu.function.getArgument(0))), 0);
  EXPECT_FALSE(found->lookup(relu.function.getArgument(1)));

  Scalar power("%r = math.powf %x, %y : f64");
  found = power.differentiate();
  ASSERT_TRUE(succeeded(found));
  EXPECT_EQ(power.run(0, 2).lookup(found->lookup(power.function.getArgument(1))), 0);
}

TEST(ScalarDerivative, RefusesWhatItDoesNotKnow) {
  Scalar scalar("%r = math.cbrt %x : f64");
  ScopedDiagnosticHandler quiet(&scalar.context, [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(scalar.differentiate()));
}

} // namespace
