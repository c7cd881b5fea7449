// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Remarks.h.
#include "compiler/CAPI/Remarks.h"
#include "compiler/CAPI/Internal.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace {
/// MLIR's way out for remarks, into an array.
struct KeepingStreamer : remark::detail::MLIRRemarkStreamerBase {
  explicit KeepingStreamer(llvm::json::Array &kept) : kept(kept) {}

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
    if (llvm::json::Value value(std::move(each)); !llvm::is_contained(kept, value))
      kept.push_back(std::move(value));
  }

  llvm::json::Array &kept;
};
} // namespace

weft::capi::RemarkCollector::RemarkCollector(MLIRContext &context) : context(context) {
  remark::RemarkCategories categories;
  categories.missed = ".*";
  // It fails for patterns that are none alone.
  (void)remark::enableOptimizationRemarks(context, std::make_unique<KeepingStreamer>(kept),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

weft::capi::RemarkCollector::~RemarkCollector() { context.setRemarkEngine(nullptr); }
