// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Target/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft {
namespace {

// PTX ISA 9.7.14.5, table of shapes; 9.7.9.25.3 for the sizes of cp.async.
constexpr MmaInstruction ampereMma[] = {
    {MmaElement::F16, MmaAccumulator::F32, {16, 8, 16}},  {MmaElement::F16, MmaAccumulator::F16, {16, 8, 16}},
    {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 16}}, {MmaElement::TF32, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::S8, MmaAccumulator::S32, {16, 8, 32}},   {MmaElement::F16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F16, MmaAccumulator::F16, {16, 8, 8}},   {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 8}},
};
constexpr int asyncSizes[] = {4, 8, 16};

// CUDA C++ Programming Guide, table of compute capabilities: shared memory per block is 163 KiB and 227 KiB, of
// a multiprocessor 164 KiB and 228 KiB, of which each block takes 1 KiB beside its own.
constexpr TargetInfo targets[] = {
    {.name = "sm_80",
     .ptxFeature = "+ptx80",
     .ptxVersion = 80,
     .warpSize = 32,
     .maxWarps = 32,
     .registersPerThread = 255,
     .registersPerProcessor = 65536,
     .sharedBytesPerBlock = 163 * 1024,
     .sharedBytesPerProcessor = 164 * 1024,
     .reservedSharedBytes = 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .vectorBytes = 16,
     .sectorBytes = 32,
     .bankCount = 32,
     .bankBytes = 4,
     .asyncCopyBytes = asyncSizes,
     .bf16Arithmetic = false,
     .mma = ampereMma},
    {.name = "sm_90a",
     .ptxFeature = "+ptx80",
     .ptxVersion = 80,
     .warpSize = 32,
     .maxWarps = 32,
     .registersPerThread = 255,
     .registersPerProcessor = 65536,
     .sharedBytesPerBlock = 227 * 1024,
     .sharedBytesPerProcessor = 228 * 1024,
     .reservedSharedBytes = 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .vectorBytes = 16,
     .sectorBytes = 32,
     .bankCount = 32,
     .bankBytes = 4,
     .asyncCopyBytes = asyncSizes,
     .bf16Arithmetic = true,
     .mma = ampereMma},
};

std::optional<MmaElement> mmaElement(Type type) {
  if (type.isF16())
    return MmaElement::F16;
  if (type.isBF16())
    return MmaElement::BF16;
  if (type.isF32())
    return MmaElement::TF32;
  if (type.isInteger(8))
    return MmaElement::S8;
  return std::nullopt;
}

std::optional<MmaAccumulator> mmaAccumulator(Type type) {
  if (type.isF16())
    return MmaAccumulator::F16;
  if (type.isF32())
    return MmaAccumulator::F32;
  if (type.isInteger(32))
    return MmaAccumulator::S32;
  return std::nullopt;
}

} // namespace

llvm::ArrayRef<TargetInfo> TargetInfo::all() { return targets; }

const TargetInfo *TargetInfo::find(llvm::StringRef name) {
  const auto *found = llvm::find_if(targets, [&](const TargetInfo &target) { return target.name == name; });
  return found == std::end(targets) ? nullptr : found;
}

const TargetInfo *TargetInfo::of(Operation *op) {
  ModuleOp module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  if (!module) {
    op->emitError("expected a module around the kernel, with the attribute 'warp.target'");
    return nullptr;
  }
  auto name = module->getAttrOfType<StringAttr>("warp.target");
  if (!name) {
    module.emitError("expected the module attribute 'warp.target', but found none");
    return nullptr;
  }
  if (const TargetInfo *target = find(name.getValue()))
    return target;
  InFlightDiagnostic diagnostic = module.emitError("unknown target '") << name.getValue() << "'";
  Diagnostic &note = diagnostic.attachNote() << "the targets are";
  for (const TargetInfo &target : all())
    note << " '" << target.name << "'";
  return nullptr;
}

std::optional<MmaInstruction> TargetInfo::mmaFor(Type element, Type accumulator, int64_t inner) const {
  auto elementKind = mmaElement(element);
  auto accumulatorKind = mmaAccumulator(accumulator);
  if (!elementKind || !accumulatorKind)
    return std::nullopt;
  std::optional<MmaInstruction> best;
  for (const MmaInstruction &instruction : mma) {
    if (instruction.element != *elementKind || instruction.accumulator != *accumulatorKind)
      continue;
    bool fits = instruction.shape[2] <= inner;
    if (!best || (fits ? best->shape[2] > inner || instruction.shape[2] > best->shape[2]
                       : instruction.shape[2] < best->shape[2]))
      best = instruction;
  }
  return best;
}

} // namespace weft
