// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Remarks.h.
#include "compiler/CAPI/Remarks.h"
#include "compiler/CAPI/Internal.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace {
/// MLIR's way out for remarks, into arrays.
struct KeepingStreamer : remark::detail::MLIRRemarkStreamerBase {
  KeepingStreamer(llvm::json::Array &missed, llvm::json::Array &decisions) : missed(missed), decisions(decisions) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string message;
    for (const auto &argument : remark.getArgs())
      message += (message.empty() ? "" : "; ") + argument.val;
    llvm::json::Object each{{"name", remark.getRemarkName()},
                            {"category", remark.getCategoryName()},
                            {"function", remark.getFunction()},
                            {"message", message}};
    FileLineColLoc position = weft::capi::filePosition(remark.getLocation());
    each["file"] = position ? position.getFilename().strref() : llvm::StringRef();
    each["line"] = position ? position.getLine() : 0;
    each["column"] = position ? position.getColumn() : 0;
    // A pass may come to the same op many times, as a schedule is looked up by each who needs it.
    llvm::json::Array &kept = remark.getRemarkType() == llvm::remarks::Type::Analysis ? decisions : missed;
    if (llvm::json::Value value(std::move(each)); !llvm::is_contained(kept, value))
      kept.push_back(std::move(value));
  }

  llvm::json::Array &missed, &decisions;
};
} // namespace

weft::capi::RemarkCollector::RemarkCollector(MLIRContext &context, bool wantMissed, bool wantDecisions)
    : context(context) {
  remark::RemarkCategories categories;
  if (wantMissed)
    categories.missed = ".*";
  if (wantDecisions)
    categories.analysis = ".*";
  // It fails for patterns that are none alone.
  (void)remark::enableOptimizationRemarks(context, std::make_unique<KeepingStreamer>(missed, decisions),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

weft::capi::RemarkCollector::~RemarkCollector() { context.setRemarkEngine(nullptr); }
