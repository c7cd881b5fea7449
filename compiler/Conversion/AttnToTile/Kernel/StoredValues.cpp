// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"
#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"

using namespace mlir;

namespace weft {

Value StoredValues::at(Value value) const {
  Value tensor = find(value);
  assert(tensor && "a kernel reads a value that nobody had stored");
  return tensor;
}

bool StoredValues::isInParts(Value value) const { return wholeType(at(value)).getDims() != wholeType(value).getDims(); }

void StoredValues::record(ValueRange values, ValueRange made) {
  assert(made.size() >= values.size() && "a kernel makes fewer tensors than it was asked for");
  for (auto [value, tensor] : llvm::zip(values, made))
    record(value, tensor);
}

void StoredValues::recordInsteadOf(Value value, Value other) {
  record(value, at(other));
  tensors.erase(other);
}

} // namespace weft
