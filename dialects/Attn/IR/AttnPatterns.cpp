// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the pattern attributes.
#include "dialects/Attn/IR/AttnDialect.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace weft::attn;

bool weft::attn::isPattern(Attribute attribute) {
  return isa<FullAttr, EmptyAttr, CausalAttr, WindowAttr, BlockWindowAttr, PrefixAttr, GlobalTokensAttr, StridedAttr,
             DilatedAttr, NeighbourhoodAttr, RandomBlocksAttr, DocumentAttr, BlocksAttr, BlockBitmapAttr, SpanAttr,
             MaskAttr, AndAttr, OrAttr, NotAttr, ShiftAttr, PerHeadAttr, TransposeAttr, SectionAttr, KeptAttr>(
      attribute);
}

using EmitError = function_ref<InFlightDiagnostic()>;

/// Positions are 32 bits in kernels; beyond this a sum of two could overflow.
static constexpr int64_t largest = int64_t(1) << 30;

static LogicalResult atLeast(EmitError emitError, StringRef name, int64_t value, int64_t least) {
  if (value < least)
    return emitError() << "expected '" << name << "' to be at least " << least << ", but got " << value;
  if (value > largest)
    return emitError() << "expected '" << name << "' to be at most " << largest << ", but got " << value;
  return success();
}

/// The product of sizes that are each right by themselves.
static LogicalResult productAtMost(EmitError emitError, StringRef what, ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    product *= size;
    if (product > largest)
      return emitError() << "expected " << what << " to be at most " << largest << ", but got more";
  }
  return success();
}

static LogicalResult allAtLeast(EmitError emitError, StringRef name, ArrayRef<int64_t> values, int64_t least) {
  for (int64_t value : values)
    if (failed(atLeast(emitError, name, value, least)))
      return failure();
  return success();
}

static LogicalResult allPatterns(EmitError emitError, ArrayRef<Attribute> patterns) {
  if (patterns.empty())
    return emitError() << "expected at least one pattern";
  for (Attribute pattern : patterns) {
    if (!isPattern(pattern))
      return emitError() << "expected a pattern, but got " << pattern;
    if (isa<KeptAttr>(pattern))
      return emitError() << "expected '#attn.kept' to be a domain's whole pattern, but it is a part of one";
  }
  return success();
}

LogicalResult WindowAttr::verify(EmitError emitError, std::optional<int64_t> left, std::optional<int64_t> right) {
  // A negative side leaves out the nearest neighbours.
  if (failed(atLeast(emitError, "left", left.value_or(0), -largest)))
    return failure();
  return atLeast(emitError, "right", right.value_or(0), -largest);
}

LogicalResult BlockWindowAttr::verify(EmitError emitError, ArrayRef<int64_t> window, ArrayRef<int64_t> grid) {
  if (window.empty() || window.size() > 2)
    return emitError() << "expected a window of one or two sizes, but got " << window.size();
  if (grid.size() != (window.size() == 2 ? 2 : 0))
    return emitError() << "expected a grid of " << (window.size() == 2 ? 2 : 0) << " sizes, but got " << grid.size();
  if (failed(allAtLeast(emitError, "window", window, 1)))
    return failure();
  if (failed(allAtLeast(emitError, "grid", grid, 1)))
    return failure();
  return productAtMost(emitError, "the grid's tokens", grid);
}

LogicalResult PrefixAttr::verify(EmitError emitError, int64_t size) { return atLeast(emitError, "size", size, 0); }
LogicalResult GlobalTokensAttr::verify(EmitError emitError, int64_t size) {
  return atLeast(emitError, "size", size, 0);
}
LogicalResult StridedAttr::verify(EmitError emitError, int64_t step) { return atLeast(emitError, "step", step, 1); }
LogicalResult DilatedAttr::verify(EmitError emitError, int64_t step, int64_t width) {
  if (failed(atLeast(emitError, "step", step, 1)))
    return failure();
  if (failed(atLeast(emitError, "width", width, 0)))
    return failure();
  return productAtMost(emitError, "step * width", {step, width});
}

LogicalResult NeighbourhoodAttr::verify(EmitError emitError, ArrayRef<int64_t> shape, ArrayRef<int64_t> kernel,
                                        ArrayRef<int64_t> dilation) {
  if (shape.empty() || shape.size() > 3 || kernel.size() != shape.size() || dilation.size() != shape.size())
    return emitError() << "expected shape, kernel and dilation of one to three sizes each, as many in all, but got "
                       << shape.size() << ", " << kernel.size() << " and " << dilation.size();
  if (failed(allAtLeast(emitError, "shape", shape, 1)) || failed(allAtLeast(emitError, "kernel", kernel, 1)) ||
      failed(allAtLeast(emitError, "dilation", dilation, 1)))
    return failure();
  for (auto [size, taps, step] : llvm::zip(shape, kernel, dilation))
    if (taps * step > size)
      return emitError() << "expected kernel * dilation to be at most the axis' size " << size << ", but got " << taps
                         << " * " << step;
  return productAtMost(emitError, "the shape's tokens", shape);
}

LogicalResult RandomBlocksAttr::verify(EmitError emitError, int64_t, int64_t perRow, int64_t block) {
  if (failed(atLeast(emitError, "perRow", perRow, 0)))
    return failure();
  return atLeast(emitError, "block", block, 1);
}
LogicalResult BlocksAttr::verify(EmitError emitError, int64_t, int64_t, int64_t blockM, int64_t blockN) {
  return allAtLeast(emitError, "block", {blockM, blockN}, 1);
}
LogicalResult BlockBitmapAttr::verify(EmitError emitError, int64_t, int64_t blockM, int64_t blockN) {
  return allAtLeast(emitError, "block", {blockM, blockN}, 1);
}
LogicalResult AndAttr::verify(EmitError emitError, ArrayRef<Attribute> patterns) {
  return allPatterns(emitError, patterns);
}
LogicalResult OrAttr::verify(EmitError emitError, ArrayRef<Attribute> patterns) {
  return allPatterns(emitError, patterns);
}
LogicalResult PerHeadAttr::verify(EmitError emitError, ArrayRef<Attribute> patterns) {
  return allPatterns(emitError, patterns);
}
LogicalResult NotAttr::verify(EmitError emitError, Attribute pattern) { return allPatterns(emitError, pattern); }
/// How far the shifts around any one part of a pattern move it in all.
static int64_t shiftsIn(Attribute pattern) {
  int64_t most = 0;
  pattern.walkImmediateSubElements([&](Attribute part) { most = std::max(most, shiftsIn(part)); }, [](Type) {});
  if (auto shift = dyn_cast<ShiftAttr>(pattern))
    most += std::abs(shift.getBy());
  return most;
}

LogicalResult ShiftAttr::verify(EmitError emitError, Attribute pattern, int64_t by) {
  if (failed(atLeast(emitError, "by", by, -largest)) || failed(allPatterns(emitError, pattern)))
    return failure();
  if (int64_t all = std::abs(by) + shiftsIn(pattern); all > largest)
    return emitError() << "expected shifts of at most " << largest << " in all, but got " << all;
  return success();
}
LogicalResult TransposeAttr::verify(EmitError emitError, Attribute pattern) { return allPatterns(emitError, pattern); }
LogicalResult KeptAttr::verify(EmitError emitError, Attribute pattern, Attribute weights) {
  return allPatterns(emitError, {pattern, weights});
}
LogicalResult SectionAttr::verify(EmitError emitError, Attribute pattern, int64_t, int64_t) {
  return allPatterns(emitError, pattern);
}
