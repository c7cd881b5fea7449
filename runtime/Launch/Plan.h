// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A program of a library on one device, ready to run: kernels loaded, expressions parsed, parameters laid out. What is
// left to a run is what depends on the tensors.
//
// A program of two launches, of a plan with one buffer, run on x of [1000, 64] elements of f16:
//
//   "inputs": x [N, 64]    "outputs": y [N, 64]      N = 1000, from x's shape
//   "buffers": s [N]                                 s: 4,000 bytes at 0 of the workspace, of which there are 4,096
//   "launches":
//     sums   (x, s), grid cdiv(N, 64), 1, 1          16 blocks; parameters: x, 64, s, ..
//     divide (x, s, y), grid cdiv(N, 64), 1, 1       16 blocks, on the same stream: after the sums
#pragma once

#include "runtime/Launch/Arena.h"
#include "runtime/Launch/Modules.h"
#include "runtime/Launch/Tensors.h"
#include "runtime/Library/Library.h"

#include <atomic>
#include <deque>

namespace weft::launch {

/// What a run of a program needs.
struct Requirements {
  std::vector<Tensor> outputs; ///< contiguous, at address 0
  uint64_t workspaceBytes = 0; ///< a multiple of 256
};

/// Memory that a run may use for its buffers: at least the bytes it requires, at a multiple of 256.
struct Workspace {
  driver::Address address = 0;
  uint64_t bytes = 0;
};

/// A program's plans for one device, of which each run takes the first whose guards its sizes meet. May be used from
/// several threads; two runs at a time must not share a workspace, unless they are on one stream.
class Plan {
public:
  /// The plans of program `index` for a device: those whose target runs there, up to the first without guards. Loads
  /// nothing. WrongTarget names the targets that there are.
  static Result<std::shared_ptr<const Plan>> make(std::shared_ptr<const library::Library> library, size_t index,
                                                  std::shared_ptr<driver::Device> device,
                                                  std::shared_ptr<Modules> modules);

  const library::Program &program() const { return *source; }
  /// The plan that serves the sizes that no other is for.
  const library::PlanVariant &variant() const { return *ways.back().plan; }
  /// The plan, by its number among the program's variants, that a run on inputs of these shapes takes.
  Result<size_t> choose(std::span<const Tensor> inputs) const;

  /// Loads the kernels of all plans, so that no run does.
  Status load() const;

  /// What a run on inputs of these shapes needs. Only elements and shapes are looked at.
  Result<Requirements> require(std::span<const Tensor> inputs) const;

  /// Checks everything, then queues all of it on `stream`: zero fills and launches, in order. Waits for nothing on a
  /// CUDA device. The first run that takes a plan loads its kernels. A launch whose grid is empty is left out, and what
  /// it would have written, if it has elements at all, is zero. InvalidArgument, naming what is wrong, before anything is queued.
  Status run(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Workspace workspace,
             driver::StreamHandle stream) const;

private:
  /// Where one argument of a launch comes from and goes to.
  struct Field {
    const library::PlanArgument *argument;
    uint32_t offset, width; ///< bytes, in the parameters
    int64_t divisibleBy;
    std::optional<int64_t> equals;
  };
  struct Step {
    const library::PlanLaunch *launch;
    const library::Kernel *kernel;
    const library::Variant *variant;
    mutable std::shared_ptr<driver::Kernel> loaded; ///< null until its plan is loaded
    std::vector<Field> fields;                      ///< of pointers, strides and sizes
    std::vector<std::byte> parameters;              ///< reals in their places, all else 0
    std::unique_ptr<Step> otherwise;                ///< by the kernel's next variant for the target; null at the last
  };
  /// One plan, ready.
  struct Way {
    const library::PlanVariant *plan = nullptr;
    std::vector<Step> steps;
    std::vector<BufferLife> lives; ///< of the buffers, sizes 0
    mutable std::mutex guard = {}; ///< held while the kernels are loaded
    mutable std::atomic<bool> loaded = false;
  };
  /// A launch of one run, checked.
  struct Prepared;
  /// The tensors of one run, by number, the symbols, and the plan that they take.
  struct Bound;

  Plan() = default;
  Status addWay(const library::Library &library, const library::PlanVariant &plan);
  static Result<Step> makeStep(const library::Library &library, const library::PlanLaunch &launch, size_t variant);
  static Result<Step> makeSteps(const library::Library &library, const library::PlanLaunch &launch);
  Status load(const Way &way) const;
  Result<const Way *> wayFor(std::span<const int64_t> symbols) const;
  Result<Bound> bind(std::span<const Tensor> inputs, bool shapesOnly) const;
  Status place(Bound &bound, std::span<const Tensor> outputs, Workspace workspace) const;
  ArenaLayout arenaOf(const Bound &bound) const;
  Result<Prepared> prepare(const Step &step, const Bound &bound) const;
  /// By the first of a launch's variants whose guards hold; the last one's refusal where none do.
  Result<Prepared> prepareFirst(const Step &step, const Bound &bound) const;
  /// A prepared launch with its tensor maps, or by the next variant that can make its own. Its plan is loaded.
  Result<Prepared> complete(Prepared prepared, const Bound &bound) const;
  Status explain(const Step &step, const Bound &bound, const Error &error) const;
  Status fillParameters(const Step &step, const Bound &bound, std::vector<std::byte> &parameters) const;
  std::string describe(const library::PlanArgument &argument) const;

  std::shared_ptr<const library::Library> owner;
  std::shared_ptr<driver::Device> device;
  std::shared_ptr<Modules> modules;
  const library::Program *source = nullptr;
  std::deque<Way> ways; ///< the last has no guards
};

/// Index of a program; NotFound names those that there are.
Result<size_t> requireProgram(const library::Library &library, std::string_view name);

} // namespace weft::launch
