// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-number-attends and attn-choose-schedules: how a schedule reaches its op.
//
//   %o, %lse = attn.attend %q, ...         with choices 0.forward=64x64x4x2
//     ─▶ %o, %lse = attn.attend %q, ... {attn.number = 0, schedule = #attn.schedule<rows = 64, ...>}
//
// Attentions are numbered before they are differentiated, so that a gradient's kernels are found by the number of the
// attention that they belong to, however the ops were moved, merged or dropped.
#include "compiler/Conversion/AttnToTile/Attention/Schedules.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendForward.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNNUMBERATTENDS
#define GEN_PASS_DEF_ATTNCHOOSESCHEDULES
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

static constexpr std::pair<ScheduleRole, StringLiteral> roleNames[] = {{ScheduleRole::Forward, "forward"},
                                                                       {ScheduleRole::Query, "backward.query"},
                                                                       {ScheduleRole::Keys, "backward.keys"},
                                                                       {ScheduleRole::Values, "backward.values"}};

StringRef roleName(ScheduleRole role) { return roleNames[static_cast<size_t>(role)].second; }

std::optional<ScheduleRole> roleNamed(StringRef name) {
  for (auto [role, known] : roleNames)
    if (known == name)
      return role;
  return std::nullopt;
}

std::optional<ScheduleChoice> parseChoice(StringRef text) {
  auto [place, numbers] = text.split('=');
  auto [number, name] = place.split('.');
  std::optional<ScheduleRole> role = roleNamed(name);
  ScheduleChoice choice;
  if (!role || number.getAsInteger(10, choice.attend) || choice.attend < 0)
    return std::nullopt;
  choice.role = *role;
  SmallVector<StringRef> parts;
  numbers.split(parts, 'x');
  int64_t *fields[] = {&choice.rows,     &choice.columns, &choice.warps,     &choice.stages,
                       &choice.channels, &choice.cluster, &choice.persistent};
  if (parts.size() < 4 || parts.size() > std::size(fields))
    return std::nullopt;
  for (auto [part, field] : llvm::zip(parts, fields))
    if (part.getAsInteger(10, *field))
      return std::nullopt;
  return choice;
}

static ScheduleRole roleOf(BackwardPart::Kind kind) {
  switch (kind) {
  case BackwardPart::Kind::Query:
    return ScheduleRole::Query;
  case BackwardPart::Kind::Values:
    return ScheduleRole::Values;
  case BackwardPart::Kind::Keys:
  case BackwardPart::Kind::Diagonal:
  case BackwardPart::Kind::Window:
  case BackwardPart::Kind::OnePass:
    return ScheduleRole::Keys;
  }
  llvm_unreachable("all kinds are handled");
}

/// The schedules that a gradient's kernels run by.
static llvm::SmallSetVector<ScheduleRole, 3> rolesOf(attn::AttendBackwardOp op) {
  llvm::SmallSetVector<ScheduleRole, 3> roles;
  for (const BackwardPart &part : backwardParts(op))
    roles.insert(roleOf(part.kind));
  return roles;
}

static attn::ScheduleAttr scheduleOf(attn::AttendBackwardOp op, ScheduleRole role) {
  switch (role) {
  case ScheduleRole::Query:
    return queryGradientSchedule(op);
  case ScheduleRole::Values:
    return valueGradientSchedule(op);
  case ScheduleRole::Keys:
  case ScheduleRole::Forward:
    return keyGradientSchedule(op);
  }
  llvm_unreachable("all roles are handled");
}

static std::optional<int64_t> numberOf(Operation *op) {
  auto number = dyn_cast_or_null<IntegerAttr>(op->getDiscardableAttr(attn::numberAttrName));
  return number ? std::optional(number.getInt()) : std::nullopt;
}

/// Whether the head sizes are integers; attn-to-tile refuses an attention where they are not.
static bool hasHeadSizes(const Attend &attend) {
  return attend.queryType().staticDim(3) && attend.valueType(0).staticDim(3);
}

/// Calls `visit` with each attention or gradient of a module's programs that has a number.
static void visitNumbered(ModuleOp module, llvm::function_ref<void(Operation *, int64_t)> visit) {
  for (auto program : module.getOps<func::FuncOp>())
    if (program->hasAttr(attn::programAttrName))
      program.walk([&](Operation *op) {
        std::optional<int64_t> number = numberOf(op);
        auto forward = dyn_cast<attn::AttendOp>(op);
        auto backward = dyn_cast<attn::AttendBackwardOp>(op);
        if (number && (forward || backward) && hasHeadSizes(forward ? Attend::of(forward) : Attend::of(backward)))
          visit(op, *number);
      });
}

SmallVector<ScheduleFacts> scheduleFacts(ModuleOp module) {
  std::map<std::pair<int64_t, ScheduleRole>, ScheduleFacts> found;
  auto add = [&](int64_t number, ScheduleRole role, attn::ScheduleAttr schedule, const Attend &attend, bool alone) {
    const std::optional<WindowTiling> &windows = attend.form.windows;
    found.try_emplace({number, role}, ScheduleFacts{number, role, schedule, attend.headSize(), attend.valueSize(),
                                                    attend.storage().getIntOrFloatBitWidth(), attend.group(0),
                                                    windows ? windows->tokens : 0, alone, attend.walksTheSame()});
  };
  visitNumbered(module, [&](Operation *op, int64_t number) {
    if (auto attend = dyn_cast<attn::AttendOp>(op))
      return add(number, ScheduleRole::Forward, forwardSchedule(attend), Attend::of(attend), /*alone=*/false);
    auto backward = cast<attn::AttendBackwardOp>(op);
    for (ScheduleRole role : rolesOf(backward))
      add(number, role, scheduleOf(backward, role), Attend::of(backward), makesValuesApart(backward));
  });
  return llvm::map_to_vector(found, [](const auto &entry) { return entry.second; });
}

namespace {

struct NumberAttends : impl::AttnNumberAttendsBase<NumberAttends> {
  void runOnOperation() final {
    for (auto program : getOperation().getOps<func::FuncOp>()) {
      if (!program->hasAttr(attn::programAttrName))
        continue;
      int64_t next = 0;
      program.walk([&](attn::AttendOp op) {
        op->setDiscardableAttr(attn::numberAttrName, Builder(op).getI64IntegerAttr(next++));
      });
    }
  }
};

struct ChooseSchedules : impl::AttnChooseSchedulesBase<ChooseSchedules> {
  using Base::Base;
  explicit ChooseSchedules(KernelChoices chosen)
      : chosen(std::move(chosen.schedules)), tilings(std::move(chosen.tilings)) {}

  void getDependentDialects(DialectRegistry &registry) const final {
    Base::getDependentDialects(registry);
    registerRowLocalOps(registry);
  }
  void runOnOperation() final {
    if (failed(readChoices()) || failed(checkPlaces()))
      return signalPassFailure();
    setTilingChoices(getOperation(), tilings);
    bool fine = true;
    visitNumbered(getOperation(), [&](Operation *op, int64_t number) {
      if (auto attend = dyn_cast<attn::AttendOp>(op))
        fine &= set(op, number, ScheduleRole::Forward, attend.getScheduleAttrName(), forwardSchedule(attend));
      auto backward = dyn_cast<attn::AttendBackwardOp>(op);
      if (!backward)
        return;
      fine &=
          set(op, number, ScheduleRole::Query, backward.getScheduleQueryAttrName(), queryGradientSchedule(backward));
      fine &= set(op, number, ScheduleRole::Keys, backward.getScheduleKeysAttrName(), keyGradientSchedule(backward));
      if (makesValuesApart(backward))
        fine &= set(op, number, ScheduleRole::Values, backward.getScheduleValuesAttrName(),
                    valueGradientSchedule(backward));
      else
        fine &= refuseValues(op, number);
    });
    if (!fine)
      signalPassFailure();
  }

private:
  LogicalResult readChoices() {
    for (const std::string &text : choices) {
      if (std::optional<ScheduleChoice> choice = parseChoice(text))
        chosen.push_back(*choice);
      else if (std::optional<TilingChoice> tiling = parseTilingChoice(text))
        tilings.push_back(*tiling);
      else
        return getOperation().emitError()
               << "expected a choice such as '0.forward=128x64x4x3' or 'forward.rows.0=32x4', but got '" << text << "'";
    }
    return success();
  }

  /// Refuses a choice for an attention that no program has.
  LogicalResult checkPlaces() {
    int64_t count = 0;
    visitNumbered(getOperation(), [&](Operation *, int64_t number) { count = std::max(count, number + 1); });
    for (const ScheduleChoice &choice : chosen)
      if (choice.attend >= count)
        return getOperation().emitError() << "expected schedules for the program's " << count
                                          << " attentions, counted from 0, but got one for " << choice.attend;
    return success();
  }

  const ScheduleChoice *chosenFor(int64_t number, ScheduleRole role) const {
    auto found = llvm::find_if(
        chosen, [&](const ScheduleChoice &choice) { return choice.attend == number && choice.role == role; });
    return found == chosen.end() ? nullptr : &*found;
  }

  /// Refuses a choice for a kernel of values alone where there is none.
  bool refuseValues(Operation *op, int64_t number) {
    if (!chosenFor(number, ScheduleRole::Values))
      return true;
    InFlightDiagnostic diagnostic = op->emitOpError() << "has no kernel for the schedule of '" << number << "."
                                                      << roleName(ScheduleRole::Values) << "'";
    diagnostic.attachNote() << "the gradient of these values is made with that of the keys, by '" << number << "."
                            << roleName(ScheduleRole::Keys) << "'";
    return false;
  }

  bool set(Operation *op, int64_t number, ScheduleRole role, StringAttr name, attn::ScheduleAttr otherwise) {
    const ScheduleChoice *chosen = chosenFor(number, role);
    if (!chosen) {
      op->setAttr(name, otherwise);
      return true;
    }
    auto refuse = [&] {
      return op->emitOpError() << "cannot take the schedule of '" << number << "." << roleName(role) << "': ";
    };
    auto schedule =
        attn::ScheduleAttr::getChecked(refuse, op->getContext(), chosen->rows, chosen->columns, chosen->warps,
                                       chosen->stages, chosen->channels, chosen->cluster, chosen->persistent != 0);
    if (!schedule)
      return false;
    auto forward = dyn_cast<attn::AttendOp>(op);
    Attend attend = forward ? Attend::of(forward) : Attend::of(cast<attn::AttendBackwardOp>(op));
    if (chosen->channels && !attend.form.isWide) {
      refuse() << "expected no 'channels' for values of " << attend.valueSize() << " channels, but got "
               << chosen->channels;
      return false;
    }
    // A choice that does not mention wide values keeps the default for them.
    op->setAttr(name, withChannels(attend, schedule, otherwise.getChannels()));
    return true;
  }

  std::vector<ScheduleChoice> chosen;
  std::vector<TilingChoice> tilings;
};

} // namespace

std::unique_ptr<Pass> createAttnChooseSchedules(KernelChoices choices) {
  return std::make_unique<ChooseSchedules>(std::move(choices));
}

} // namespace weft
