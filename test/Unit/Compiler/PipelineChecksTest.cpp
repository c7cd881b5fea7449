// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The checks of patterns and stages find what they are for: patterns and a pass with planted faults, beside right ones.
#include "mlir/Dialect/Arith/IR/Arith.h"

#include "compiler/Pipelines/Checks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

/// What a pattern does to the first addition that it meets.
enum class Conduct { Right, ChangesAndFails, SucceedsWithoutChange, LeavesInvalid };

struct Planted : OpRewritePattern<arith::AddIOp> {
  Planted(MLIRContext *context, Conduct conduct) : OpRewritePattern(context), conduct(conduct) {}
  LogicalResult matchAndRewrite(arith::AddIOp op, PatternRewriter &rewriter) const override {
    if (op->hasAttr("seen"))
      return failure();
    switch (conduct) {
    case Conduct::Right:
      rewriter.modifyOpInPlace(op, [&] { op->setAttr("seen", rewriter.getUnitAttr()); });
      return success();
    case Conduct::ChangesAndFails:
      op->setAttr("seen", rewriter.getUnitAttr());
      return failure();
    case Conduct::SucceedsWithoutChange:
      return success();
    case Conduct::LeavesInvalid:
      rewriter.modifyOpInPlace(op, [&] {
        op->setAttr("seen", rewriter.getUnitAttr());
        op.getResult().setType(rewriter.getI64Type());
      });
      return success();
    }
    return failure();
  }
  Conduct conduct;
};

struct PipelineChecks : ::testing::Test {
  PipelineChecks() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    module = parseSourceString<ModuleOp>(R"(
      func.func @sum(%x: i32, %y: i32) -> i32 {
        %s = arith.addi %x, %y : i32
        func.return %s : i32
      })",
                                         ParserConfig(&context));
  }

  void rewrite(Conduct conduct) {
    RewritePatternSet patterns(&context);
    patterns.add<Planted>(&context, conduct);
    PatternChecks checks;
    GreedyRewriteConfig config;
    config.setListener(&checks).setMaxIterations(1).setMaxNumRewrites(1);
    (void)applyPatternsGreedily(*module, std::move(patterns), config);
  }

  MLIRContext context;
  std::string said;
  OwningOpRef<ModuleOp> module;
};

TEST_F(PipelineChecks, patternThatIsRight) {
  rewrite(Conduct::Right);
  EXPECT_EQ(said, "");
}

TEST_F(PipelineChecks, patternThatChangesAndFails) {
  rewrite(Conduct::ChangesAndFails);
  EXPECT_NE(said.find("failed, but changed the IR"), std::string::npos) << said;
}

TEST_F(PipelineChecks, patternThatSucceedsWithoutChange) {
  rewrite(Conduct::SucceedsWithoutChange);
  EXPECT_NE(said.find("succeeded, but changed nothing"), std::string::npos) << said;
}

TEST_F(PipelineChecks, patternThatLeavesInvalidIR) {
  rewrite(Conduct::LeavesInvalid);
  EXPECT_NE(said.find("left IR that is not valid"), std::string::npos) << said;
}

/// Marks additions, with what `number` says of each.
struct Mark : PassWrapper<Mark, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Mark)
  explicit Mark(std::function<int64_t(Operation *)> number) : number(std::move(number)) {}
  void runOnOperation() override {
    getOperation().walk([&](arith::AddIOp op) {
      op->setAttr("mark", IntegerAttr::get(IntegerType::get(&getContext(), 64), number(op)));
    });
  }
  std::function<int64_t(Operation *)> number;
};

Stage marking(std::function<int64_t(Operation *)> number) {
  return {"marked", [=](OpPassManager &passes) { passes.addPass(std::make_unique<Mark>(number)); }};
}

TEST_F(PipelineChecks, stageThatIsRight) {
  EXPECT_TRUE(succeeded(runStage(marking([](Operation *) { return 1; }), *module, Checks::Expensive)));
  EXPECT_EQ(said, "");
}

TEST_F(PipelineChecks, stageThatHangsOnAddresses) {
  auto address = [](Operation *op) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(op)); };
  EXPECT_TRUE(failed(runStage(marking(address), *module, Checks::Expensive)));
  EXPECT_NE(said.find("is another when the stage is run on a copy"), std::string::npos) << said;
  EXPECT_NE(said.find("mark"), std::string::npos) << said;
  EXPECT_TRUE(succeeded(runStage(marking(address), *module, Checks::Verify)));
}

} // namespace
