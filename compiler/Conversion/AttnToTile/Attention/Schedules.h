// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The schedules of a program's attentions: which attention is which, what is chosen for each, and the pass that writes
// the choices into the ops, where attn-to-tile reads them.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/Tilings.h"
#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// The kernel of an attention that a schedule is for.
enum class ScheduleRole : uint8_t { Forward, Query, Keys, Values };

/// "forward", "backward.query", "backward.keys" or "backward.values": the output, dq, dk with dv, and dv where it
/// has a kernel of its own. Where one kernel makes several gradients (all of a window that is one tile; dq and dk of wide values) it
/// goes by "backward.keys".
llvm::StringRef roleName(ScheduleRole role);
/// The role of that name.
std::optional<ScheduleRole> roleNamed(llvm::StringRef name);

/// A schedule for one kernel of attention number `attend` of a program.
struct ScheduleChoice {
  int64_t attend = 0;
  ScheduleRole role = ScheduleRole::Forward;
  int64_t rows = 0, columns = 0, warps = 0, stages = 0, channels = 0, cluster = 1, persistent = 0;
};

/// Reads "0.forward=128x64x4x3": rows, columns, warps, stages, and maybe channels, 0 for the default, programs of a
/// cluster, and 1 where blocks go over programs. Nothing where it is something else.
std::optional<ScheduleChoice> parseChoice(llvm::StringRef text);

/// What an attention's kernel runs by, and what bounds its choice.
struct ScheduleFacts {
  int64_t attend;
  ScheduleRole role;
  attn::ScheduleAttr schedule;
  int64_t headSize, valueSize, elementBits;
  int64_t group;        ///< query heads that share keys
  int64_t windowTokens; ///< of the window that its tiles are cut from; 0 where there is none
  bool alone;           ///< of a gradient: dk and dv are made by a kernel each
  bool mayShare;        ///< programs walk over the same blocks, and a cluster may share their copies
};

/// The kernels of every attention of a module, in ascending order of number and role. The ops must be numbered.
llvm::SmallVector<ScheduleFacts> scheduleFacts(mlir::ModuleOp module);

/// What is chosen for the kernels of a module's programs.
struct KernelChoices {
  std::vector<ScheduleChoice> schedules;
  std::vector<TilingChoice> tilings;
};

/// The pass `attn-choose-schedules` (Passes.td) with choices that are not spelled.
std::unique_ptr<mlir::Pass> createAttnChooseSchedules(KernelChoices choices);

} // namespace weft
