// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A program as a library holds it: the tensors it takes and gives, and plans of launches, one for each target.
#pragma once

#include "runtime/Driver/Target.h"
#include "runtime/Library/GridExpression.h"
#include "runtime/Library/Types.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weft::library {

struct Kernel;
class Cursor;

/// Axes that a program's tensor has at most.
inline constexpr size_t maxRank = 8;

/// A tensor of a program: its element, and its sizes as expressions over the program's symbols.
struct TensorType {
  Element element = Element::FP32;
  std::vector<Expression> dims;
};

/// A tensor that a program takes or gives.
struct NamedTensor {
  std::string name;
  TensorType type;
  bool aligned = false;           ///< its address, and the stride of every axis, must be multiples of 16 bytes
  std::vector<Expression> starts; ///< its numbers rise from 0 to each of these: where packed sequences start
};

/// One argument of a launch.
struct PlanArgument {
  enum class Kind : uint8_t { Pointer, Stride, Size, Real } kind = Kind::Pointer;
  uint32_t tensor = 0; ///< Pointer, Stride: which tensor
  uint32_t axis = 0;   ///< Stride: which axis
  Expression size;     ///< Size
  double real = 0;     ///< Real
};

/// One launch of a plan.
struct PlanLaunch {
  uint32_t kernel = 0;  ///< index into Manifest::kernels
  uint32_t variant = 0; ///< index into its variants: that of the plan's target
  std::array<Expression, 3> grid;
  std::vector<uint32_t> writes; ///< the tensors that this launch, and no other, gives
  std::vector<uint32_t> zeroed; ///< those of them that are filled with zero before
  std::vector<PlanArgument> arguments;
};

/// The sizes that a plan was chosen for: those where an expression over the program's symbols is in [atLeast, below).
struct PlanGuard {
  Expression size;
  std::optional<int64_t> atLeast, below;
};

/// How a program runs on one target. Tensors are numbered: inputs, then outputs, then buffers.
struct PlanVariant {
  driver::Target target;
  std::vector<PlanGuard> guards;   ///< all must hold; none for the plan that serves all other sizes
  std::vector<TensorType> buffers; ///< contiguous, in the workspace
  std::vector<PlanLaunch> launches;
};

/// What a program asks of its sizes: an expression over its symbols that is no less than another.
struct Requirement {
  Expression size, atLeast;
  std::string what; ///< in words: "'bits' to have blocks of 64 for all queries"
};

/// A program: what it is called with, and its plans in order of preference. Each target's last has no guards.
struct Program {
  std::string name;
  std::vector<std::string> symbols; ///< by slot; each is the whole size of some axis of an input
  std::vector<NamedTensor> inputs, outputs;
  std::vector<Requirement> required; ///< of any run, whatever its plan
  std::vector<uint32_t>
      gradientsOf; ///< of a backward: which inputs of the forward program each output is the gradient of
  std::vector<PlanVariant> variants;
};

/// Reads the program at a place in a manifest whose kernels are known. Records the first thing that is wrong in the
/// cursor.
Program readProgram(const Cursor &at, const std::vector<Kernel> &kernels);

} // namespace weft::library
