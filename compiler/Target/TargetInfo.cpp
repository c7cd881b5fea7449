// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Target/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft {
namespace {

std::optional<MmaElement> mmaElement(Type type) {
  if (type.isF16())
    return MmaElement::F16;
  if (type.isBF16())
    return MmaElement::BF16;
  if (type.isF32())
    return MmaElement::TF32;
  if (type.isInteger(8))
    return MmaElement::S8;
  if (isa<Float8E4M3FNType>(type))
    return MmaElement::E4M3;
  if (isa<Float8E5M2Type>(type))
    return MmaElement::E5M2;
  if (type.isF64())
    return MmaElement::F64;
  return std::nullopt;
}

std::optional<MmaAccumulator> mmaAccumulator(Type type) {
  if (type.isF16())
    return MmaAccumulator::F16;
  if (type.isF32())
    return MmaAccumulator::F32;
  if (type.isInteger(32))
    return MmaAccumulator::S32;
  if (type.isF64())
    return MmaAccumulator::F64;
  return std::nullopt;
}

} // namespace

llvm::ArrayRef<TargetInfo> TargetInfo::all() {
  static const std::vector<TargetInfo> infos = [] {
    std::vector<TargetInfo> found;
    for (const targets::Target &target : targets::all())
      found.push_back({target});
    return found;
  }();
  return infos;
}

const TargetInfo *TargetInfo::find(llvm::StringRef name) {
  const auto *found = llvm::find_if(all(), [&](const TargetInfo &target) { return StringRef(target.name) == name; });
  return found == all().end() ? nullptr : found;
}

const TargetInfo *TargetInfo::of(Operation *op) {
  ModuleOp module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  if (!module) {
    op->emitError() << "expected a module around the kernel, with the attribute '" << targetAttrName << "'";
    return nullptr;
  }
  auto name = module->getAttrOfType<StringAttr>(targetAttrName);
  if (!name) {
    module.emitError() << "expected the module attribute '" << targetAttrName << "', but found none";
    return nullptr;
  }
  if (const TargetInfo *target = find(name.getValue()))
    return target;
  InFlightDiagnostic diagnostic = module.emitError("unknown target '") << name.getValue() << "'";
  Diagnostic &note = diagnostic.attachNote() << "the targets are";
  for (const TargetInfo &target : all())
    note << " '" << StringRef(target.name) << "'";
  return nullptr;
}

const TargetInfo &TargetInfo::ofOrDefault(Operation *op) {
  ModuleOp module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto name = module ? module->getAttrOfType<StringAttr>(targetAttrName) : StringAttr();
  const TargetInfo *target = name ? find(name.getValue()) : nullptr;
  return target ? *target : all().front();
}

std::optional<MmaInstruction> TargetInfo::mmaFor(Type element, Type accumulator, int64_t rows, int64_t inner) const {
  auto elementKind = mmaElement(element);
  auto accumulatorKind = mmaAccumulator(accumulator);
  if (!elementKind || !accumulatorKind)
    return std::nullopt;
  auto rank = [&](const MmaInstruction &instruction) {
    auto [m, n, k] = instruction.shape;
    int64_t size = int64_t(m) * n * k;
    bool fits = m <= rows && k <= inner;
    return std::pair(fits, fits ? size : -size);
  };
  std::optional<MmaInstruction> best;
  for (const MmaInstruction &instruction : mma)
    if (instruction.element == *elementKind && instruction.accumulator == *accumulatorKind &&
        (!best || rank(instruction) > rank(*best)))
      best = instruction;
  return best;
}

int64_t TargetInfo::elementsOfAtomicAdd(Type element) const {
  return element.isF16() || (element.isBF16() && bf16Arithmetic) ? 2 : 1;
}

const targets::WarpgroupMma *TargetInfo::warpgroupMmaFor(Type element, Type accumulator) const {
  auto elementKind = mmaElement(element);
  auto accumulatorKind = mmaAccumulator(accumulator);
  for (const targets::WarpgroupMma &family : warpgroups.families)
    if (elementKind == family.element && accumulatorKind == family.accumulator)
      return &family;
  return nullptr;
}

} // namespace weft
