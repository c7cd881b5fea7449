// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pointer analysis, op by op: kernels are written as text, and each op under test carries the name that the test
// asks for.
#include "compiler/Analysis/AxisInfo.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using ::testing::ElementsAre;
using weft::AxisInfo;

namespace {

class AxisInfoTest : public ::testing::Test {
protected:
  AxisInfoTest() {
    context.loadDialect<weft::tile::TileDialect, arith::ArithDialect, func::FuncDialect, scf::SCFDialect>();
  }

  /// Analyses a kernel with the arguments %p (16-byte aligned pointer), %q (pointer), %n (multiple of 16) and %m, and
  /// gives what is known about the op marked {name}.
  AxisInfo analyse(const std::string &body, StringRef name = "it") {
    std::string text = "func.func @kernel(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f16>, "
                       "%n: i32 {tile.divisibility = 16 : i32}, %m: i32) {\n" +
                       body + "\nfunc.return\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (!module)
      return AxisInfo::unknown(1);
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    weft::AxisAnalysis analysis(function);
    AxisInfo info = AxisInfo::unknown(0);
    bool found = false;
    function.walk([&](Operation *op) {
      if (op->hasAttr(name)) {
        info = analysis.lookup(op->getResult(0));
        found = true;
      }
    });
    EXPECT_TRUE(found) << "no op is marked '" << name.str() << "'";
    return info;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

const std::string range = "%r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n";

TEST_F(AxisInfoTest, RangeCountsUpFromItsStart) {
  AxisInfo info = analyse("%r = tile.make_range {start = 24 : i32, end = 88 : i32, it} : tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(64));
  EXPECT_THAT(info.divisibility, ElementsAre(8));
  EXPECT_THAT(info.constancy, ElementsAre(1));
  EXPECT_TRUE(info.isNonNegative());
}

TEST_F(AxisInfoTest, SplatRepeatsItsScalar) {
  AxisInfo info = analyse("%s = tile.splat %n {it} : i32 -> tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(1));
  EXPECT_THAT(info.divisibility, ElementsAre(16));
  EXPECT_THAT(info.constancy, ElementsAre(64));
}

TEST_F(AxisInfoTest, ConstantIsKnown) {
  AxisInfo info = analyse("%c = arith.constant {it} dense<48> : tensor<64xi32>");
  EXPECT_EQ(info.constant, 48);
  EXPECT_THAT(info.divisibility, ElementsAre(16));
}

TEST_F(AxisInfoTest, SumOfSplatAndRangeCountsUp) {
  AxisInfo info =
      analyse(range + "%s = tile.splat %n : i32 -> tensor<64xi32>\n%x = arith.addi %s, %r {it} : tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(64));
  EXPECT_THAT(info.divisibility, ElementsAre(16));
}

TEST_F(AxisInfoTest, SumOfUnknownSplatAndRangeIsNotAligned) {
  AxisInfo info =
      analyse(range + "%s = tile.splat %m : i32 -> tensor<64xi32>\n%x = arith.addi %s, %r {it} : tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(64));
  EXPECT_THAT(info.divisibility, ElementsAre(1));
}

TEST_F(AxisInfoTest, DifferenceCountsUpOnItsLeftSideOnly) {
  std::string splat = "%s = tile.splat %n : i32 -> tensor<64xi32>\n";
  EXPECT_THAT(analyse(range + splat + "%x = arith.subi %r, %s {it} : tensor<64xi32>").contiguity, ElementsAre(64));
  EXPECT_THAT(analyse(range + splat + "%x = arith.subi %s, %r {it} : tensor<64xi32>").contiguity, ElementsAre(1));
}

TEST_F(AxisInfoTest, ProductMultipliesDivisibility) {
  AxisInfo info = analyse("%c = arith.constant 4 : i32\n%x = arith.muli %n, %c {it} : i32");
  EXPECT_THAT(info.divisibility, ElementsAre(64));
}

TEST_F(AxisInfoTest, ProductOfRangeAndStrideDoesNotCountUp) {
  AxisInfo info =
      analyse(range + "%s = tile.splat %n : i32 -> tensor<64xi32>\n%x = arith.muli %r, %s {it} : tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(1));
  EXPECT_THAT(info.divisibility, ElementsAre(16));
}

TEST_F(AxisInfoTest, PointerDivisibilityIsInBytes) {
  AxisInfo info = analyse(range + "%b = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>\n"
                                  "%x = tile.addptr %b, %r {it} : tensor<64x!tile.ptr<f16>>, tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(64));
  EXPECT_THAT(info.divisibility, ElementsAre(16));
  EXPECT_EQ(info.divisibilityAt(0, 8, 2), 16) << "runs of 8 halves begin at multiples of 16 bytes";
  EXPECT_EQ(info.divisibilityAt(0, 2, 2), 4) << "runs of 2 halves, at multiples of 4";
}

TEST_F(AxisInfoTest, PointerMovedByAnOddCountLosesItsAlignment) {
  AxisInfo info = analyse("%x = tile.addptr %p, %m {it} : !tile.ptr<f16>, i32");
  EXPECT_THAT(info.divisibility, ElementsAre(2)) << "a whole number of halves";
}

TEST_F(AxisInfoTest, ExpandAndBroadcastRepeat) {
  std::string text = range + "%e = tile.expand_dims %r {axis = 0 : i32, e} : tensor<64xi32> -> tensor<1x64xi32>\n"
                             "%b = tile.broadcast %e {it} : tensor<1x64xi32> -> tensor<32x64xi32>";
  AxisInfo info = analyse(text);
  EXPECT_THAT(info.contiguity, ElementsAre(1, 64));
  EXPECT_THAT(info.constancy, ElementsAre(32, 1));
  EXPECT_THAT(analyse(text, "e").constancy, ElementsAre(1, 1));
}

TEST_F(AxisInfoTest, PermuteMovesTheFacts) {
  AxisInfo info =
      analyse(range + "%e = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
                      "%x = tile.permute %e {order = array<i32: 1, 0>, it} : tensor<1x64xi32> -> tensor<64x1xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(64, 1));
}

TEST_F(AxisInfoTest, ComparisonWithAnAlignedBoundHasOneOutcomeARun) {
  std::string bound = range + "%s = tile.splat %n : i32 -> tensor<64xi32>\n";
  EXPECT_THAT(analyse(bound + "%x = arith.cmpi slt, %r, %s {it} : tensor<64xi32>").constancy, ElementsAre(16));
  EXPECT_THAT(analyse(bound + "%x = arith.cmpi sle, %s, %r {it} : tensor<64xi32>").constancy, ElementsAre(16));
  EXPECT_THAT(analyse(bound + "%x = arith.cmpi sle, %r, %s {it} : tensor<64xi32>").constancy, ElementsAre(1))
      << "the run that begins at the bound is true in its first element only";
  EXPECT_THAT(
      analyse(range + "%s = tile.splat %m : i32 -> tensor<64xi32>\n%x = arith.cmpi slt, %r, %s {it} : tensor<64xi32>")
          .constancy,
      ElementsAre(1));
}

TEST_F(AxisInfoTest, QuotientRepeatsAndRemainderCountsUp) {
  std::string eight = range + "%c = arith.constant dense<8> : tensor<64xi32>\n";
  EXPECT_THAT(analyse(eight + "%x = arith.divsi %r, %c {it} : tensor<64xi32>").constancy, ElementsAre(8));
  EXPECT_THAT(analyse(eight + "%x = arith.remsi %r, %c {it} : tensor<64xi32>").contiguity, ElementsAre(8));
}

TEST_F(AxisInfoTest, QuotientOfWhatMayBeNegativeDoesNotRepeat) {
  // -8, -7, ... divided by 8 is -1, 0, 0, ...
  std::string text = range +
                     "%s = tile.splat %n : i32 -> tensor<64xi32>\n%y = arith.subi %r, %s : tensor<64xi32>\n"
                     "%c = arith.constant dense<8> : tensor<64xi32>\n%x = arith.divsi %y, %c {it} : tensor<64xi32>";
  EXPECT_THAT(analyse(text).constancy, ElementsAre(1));
}

// The grouped order of a product's blocks: pn = (pid % g) / min(m, 8), then (pn * 64 + range) % n.
const std::string grouped =
    range + "%pid = tile.program_id x : i32\n%c8 = arith.constant 8 : i32\n%c64 = arith.constant 64 : i32\n"
            "%size = arith.minsi %m, %c8 : i32\n%g = arith.muli %m, %c8 : i32\n%in = arith.remsi %pid, %g : i32\n"
            "%pn = arith.divsi %in, %size {pn} : i32\n%at = arith.muli %pn, %c64 : i32\n"
            "%s = tile.splat %at : i32 -> tensor<64xi32>\n%x = arith.addi %s, %r : tensor<64xi32>\n"
            "%b = tile.splat %n : i32 -> tensor<64xi32>\n%y = arith.remsi %x, %b {it} : tensor<64xi32>";

TEST_F(AxisInfoTest, GroupedOrderCountsUp) {
  EXPECT_TRUE(analyse(grouped, "pn").isNonNegative()) << "divisors of unknown sign are taken to be positive";
  EXPECT_THAT(analyse(grouped).contiguity, ElementsAre(16));
}

TEST_F(AxisInfoTest, QuotientByANegativeNumberIsNotTakenToBePositive) {
  AxisInfo info = analyse("%pid = tile.program_id x : i32\n%c = arith.constant -8 : i32\n"
                          "%x = arith.divsi %pid, %c {it} : i32");
  EXPECT_FALSE(info.isNonNegative());
}

TEST_F(AxisInfoTest, DifferenceAndArgumentMayBeNegative) {
  EXPECT_FALSE(analyse("%x = arith.addi %n, %n {it} : i32").isNonNegative());
  EXPECT_FALSE(analyse("%pid = tile.program_id x : i32\n%x = arith.subi %pid, %n {it} : i32").isNonNegative());
}

TEST_F(AxisInfoTest, BoundsOfTheGrid) {
  AxisInfo info = analyse("%x = tile.program_id y {it} : i32");
  EXPECT_EQ(info.range->smax(), 65534);
  info = analyse("%x = tile.num_programs z {it} : i32");
  EXPECT_EQ(info.range->smin(), 1);
}

TEST_F(AxisInfoTest, MaximumAndRemainderBound) {
  AxisInfo info = analyse("%c0 = arith.constant 0 : i32\n%c9 = arith.constant 9 : i32\n"
                          "%a = arith.maxsi %m, %c0 : i32\n%x = arith.remsi %a, %c9 {it} : i32");
  EXPECT_TRUE(info.isNonNegative());
  EXPECT_EQ(info.range->smax(), 8);
}

TEST_F(AxisInfoTest, InductionVariableLiesBetweenItsBounds) {
  AxisInfo info = analyse("%c4 = arith.constant 4 : i32\n%c1 = arith.constant 1 : i32\n%c20 = arith.constant 20 : i32\n"
                          "scf.for %i = %c4 to %c20 step %c1 : i32 {\n  %x = arith.muli %i, %c4 {it} : i32\n}");
  EXPECT_EQ(info.range->smin(), 16);
  EXPECT_EQ(info.range->smax(), 76);
}

TEST_F(AxisInfoTest, CarriedValueThatGrowsKeepsItsLowerBound) {
  AxisInfo info = analyse("%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
                          "%l = scf.for %i = %c0 to %m step %c1 iter_args(%x = %c1) -> i32 : i32 {\n"
                          "  %y = arith.addi %x, %c1 {it} : i32\n  scf.yield %y : i32\n}");
  EXPECT_TRUE(info.isNonNegative());
  EXPECT_EQ(info.range->smax(), std::numeric_limits<int32_t>::max());
}

TEST_F(AxisInfoTest, PromiseBoundsAndDivides) {
  const std::string promise = "%c0 = arith.constant 0 : i32\n%c32 = arith.constant 32 : i32\n"
                              "%sign = arith.cmpi sle, %c0, %m : i32\n%rest = arith.remsi %m, %c32 : i32\n"
                              "%even = arith.cmpi eq, %rest, %c0 : i32\n%both = arith.andi %sign, %even : i1\n";
  const std::string use = "%x = arith.addi %m, %c0 {it} : i32\n";
  AxisInfo info = analyse(promise + use + "tile.assume %both : i1");
  EXPECT_TRUE(info.isNonNegative());
  EXPECT_THAT(info.divisibility, ElementsAre(32));
  EXPECT_FALSE(analyse(promise + use).isNonNegative()) << "a condition alone promises nothing";
}

TEST_F(AxisInfoTest, PromiseHoldsInItsBlockOnly) {
  const std::string text = "%c0 = arith.constant 0 : i32\n%sign = arith.cmpi sge, %m, %c0 : i32\n"
                           "%y = arith.addi %m, %c0 {outside} : i32\n%c = arith.cmpi slt, %n, %c0 : i32\n"
                           "scf.if %c {\n  tile.assume %sign : i1\n  %x = arith.addi %m, %c0 {it} : i32\n}";
  EXPECT_TRUE(analyse(text).isNonNegative());
  EXPECT_FALSE(analyse(text, "outside").isNonNegative());
}

TEST_F(AxisInfoTest, SelectKeepsWhatBothSidesHave) {
  std::string text = range +
                     "%s = tile.make_range {start = 32 : i32, end = 96 : i32} : tensor<64xi32>\n"
                     "%b = tile.splat %n : i32 -> tensor<64xi32>\n%c = arith.cmpi slt, %r, %b : tensor<64xi32>\n"
                     "%x = arith.select %c, %r, %s {it} : tensor<64xi1>, tensor<64xi32>";
  AxisInfo info = analyse(text);
  EXPECT_THAT(info.contiguity, ElementsAre(16));
  EXPECT_THAT(info.divisibility, ElementsAre(16));
}

TEST_F(AxisInfoTest, MaximumKeepsWhatBothSidesHave) {
  const std::string clamped =
      "%c0 = arith.constant 0 : i32\n%c8 = arith.constant 8 : i32\n%a = arith.muli %m, %c8 : i32\n"
      "%x = arith.maxsi %a, %c0 {it} : i32";
  EXPECT_THAT(analyse(clamped).divisibility, ElementsAre(8));
  std::string counted = range + "%b = tile.splat %n : i32 -> tensor<64xi32>\n"
                                "%x = arith.minsi %r, %b {it} : tensor<64xi32>";
  EXPECT_THAT(analyse(counted).contiguity, ElementsAre(1)) << "it counts up to some element only";
}

TEST_F(AxisInfoTest, LoadedElementsRepeatWhereAddressAndMaskDo) {
  const std::string addresses =
      range + "%c = arith.constant dense<16> : tensor<64xi32>\n%k = arith.divsi %r, %c : tensor<64xi32>\n"
              "%i = tile.ptr_cast %p : !tile.ptr<f16> -> !tile.ptr<i64>\n"
              "%s = tile.splat %i : !tile.ptr<i64> -> tensor<64x!tile.ptr<i64>>\n"
              "%at = tile.addptr %s, %k : tensor<64x!tile.ptr<i64>>, tensor<64xi32>\n";
  EXPECT_THAT(analyse(addresses + "%x = tile.load %at {it} : tensor<64x!tile.ptr<i64>>").constancy, ElementsAre(16));
  EXPECT_THAT(analyse(addresses + "%x = tile.load %at {isVolatile, it} : tensor<64x!tile.ptr<i64>>").constancy,
              ElementsAre(1));
  const std::string masked = addresses + "%c8 = arith.constant dense<24> : tensor<64xi32>\n"
                                         "%mask = arith.cmpi slt, %r, %c8 : tensor<64xi32>\n";
  EXPECT_THAT(analyse(masked + "%x = tile.load %at, %mask {it} : tensor<64x!tile.ptr<i64>>").constancy, ElementsAre(8));
  EXPECT_THAT(analyse(masked + "%o = arith.constant dense<0> : tensor<64xi64>\n"
                               "%x = tile.load %at, %mask, %o {it} : tensor<64x!tile.ptr<i64>>")
                  .constancy,
              ElementsAre(8));
  EXPECT_THAT(analyse(masked + "%o = arith.extsi %r : tensor<64xi32> to tensor<64xi64>\n"
                               "%x = tile.load %at, %mask, %o {it} : tensor<64x!tile.ptr<i64>>")
                  .constancy,
              ElementsAre(1));
}

TEST_F(AxisInfoTest, LoopKeepsWhatEveryStepKeeps) {
  auto loop = [](const std::string &step) {
    return range + "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%s = tile.splat " + step +
           " : i32 -> tensor<64xi32>\n%b = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>\n"
           "%first = tile.addptr %b, %r : tensor<64x!tile.ptr<f16>>, tensor<64xi32>\n"
           "%l = scf.for %i = %c0 to %m step %c1 iter_args(%x = %first) -> (tensor<64x!tile.ptr<f16>>) : i32 {\n"
           "  %y = tile.addptr %x, %s {it} : tensor<64x!tile.ptr<f16>>, tensor<64xi32>\n"
           "  scf.yield %y : tensor<64x!tile.ptr<f16>>\n}";
  };
  EXPECT_THAT(analyse(loop("%n")).contiguity, ElementsAre(64));
  EXPECT_THAT(analyse(loop("%n")).divisibility, ElementsAre(16));
  EXPECT_THAT(analyse(loop("%m")).divisibility, ElementsAre(2)) << "an odd step leaves the alignment of the pointee";
}

TEST_F(AxisInfoTest, InductionVariableIsAMultipleOfItsStep) {
  AxisInfo info =
      analyse("%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\nscf.for %i = %c0 to %m step %n : i32 {\n"
              "  %x = arith.muli %i, %c1 {it} : i32\n}");
  EXPECT_THAT(info.divisibility, ElementsAre(16));
}

TEST_F(AxisInfoTest, WhileLoopMeetsItsSides) {
  AxisInfo info = analyse("%c8 = arith.constant 8 : i32\n%w = scf.while (%x = %n) : (i32) -> i32 {\n"
                          "  %c = arith.cmpi slt, %x, %m : i32\n  scf.condition(%c) %x : i32\n} do {\n^bb0(%y: i32):\n"
                          "  %z = arith.addi %y, %c8 {it} : i32\n  scf.yield %z : i32\n}");
  EXPECT_THAT(info.divisibility, ElementsAre(8));
}

TEST_F(AxisInfoTest, PromisesAreBelieved) {
  AxisInfo info = analyse("%x = arith.addi %m, %m {it, tile.divisibility = 32 : i32} : i32");
  EXPECT_THAT(info.divisibility, ElementsAre(32));
  info = analyse(range + "%x = arith.muli %r, %r {it, tile.contiguity = array<i32: 4>, tile.divisibility = array<i32: "
                         "4>} : tensor<64xi32>");
  EXPECT_THAT(info.contiguity, ElementsAre(4));
}

} // namespace
