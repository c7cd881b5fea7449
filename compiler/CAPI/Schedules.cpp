// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/CAPI/Schedules.h"

using namespace mlir;
using namespace weft;

/// Fills `fields` from a list of as many integers, or of at least `least`. False where it is something else.
static bool readNumbers(const llvm::json::Value &value, ArrayRef<int64_t *> fields, size_t least) {
  const llvm::json::Array *numbers = value.getAsArray();
  if (!numbers || numbers->size() < least || numbers->size() > fields.size())
    return false;
  for (auto [number, field] : llvm::zip(*numbers, fields)) {
    std::optional<int64_t> read = number.getAsInteger();
    if (!read)
      return false;
    *field = *read;
  }
  return true;
}

std::variant<KernelChoices, std::string> capi::readSchedules(const llvm::json::Object &object) {
  KernelChoices choices;
  for (const auto &[key, value] : object) {
    if (isTilingPlace(key)) {
      TilingChoice &choice = choices.tilings.emplace_back(TilingChoice{key.str(), {}});
      if (!readNumbers(value, {&choice.tiling.rows, &choice.tiling.warps}, 2))
        return "expected the tiling of '" + key.str() + "' to be two integers (rows, warps)";
      continue;
    }
    auto [number, name] = StringRef(key).split('.');
    std::optional<ScheduleRole> role = roleNamed(name);
    ScheduleChoice choice;
    if (!role || number.getAsInteger(10, choice.attend) || choice.attend < 0)
      return "expected the schedules' keys to be such as '0.forward', '0.backward.query', '0.backward.keys', "
             "'0.backward.values' or 'forward.rows.0', but got '" +
             key.str() + "'";
    choice.role = *role;
    if (!readNumbers(value,
                     {&choice.rows, &choice.columns, &choice.warps, &choice.stages, &choice.channels, &choice.cluster,
                      &choice.persistent},
                     4))
      return "expected the schedule of '" + key.str() +
             "' to be four integers (rows, columns, warps, stages), five (and channels of wide values, 0 for the "
             "default), six (and programs of a cluster), or seven (and 1 where blocks go over programs)";
    choices.schedules.push_back(choice);
  }
  return choices;
}

llvm::json::Array capi::describeSchedules(ModuleOp module) {
  llvm::json::Array described;
  for (const ScheduleFacts &facts : scheduleFacts(module)) {
    attn::ScheduleAttr schedule = facts.schedule;
    llvm::json::Array numbers{schedule.getRows(), schedule.getColumns(), schedule.getWarps(), schedule.getStages()};
    if (schedule.getChannels() || schedule.getCluster() > 1 || schedule.getPersistent())
      numbers.push_back(schedule.getChannels());
    if (schedule.getCluster() > 1 || schedule.getPersistent())
      numbers.push_back(schedule.getCluster());
    if (schedule.getPersistent())
      numbers.push_back(1);
    described.push_back(llvm::json::Object{{"attend", facts.attend},
                                           {"role", roleName(facts.role)},
                                           {"schedule", std::move(numbers)},
                                           {"head_size", facts.headSize},
                                           {"value_size", facts.valueSize},
                                           {"element_bits", facts.elementBits},
                                           {"group", facts.group},
                                           {"window_tokens", facts.windowTokens},
                                           {"alone", facts.alone},
                                           {"may_share", facts.mayShare}});
  }
  return described;
}

llvm::json::Array capi::describeTilings(ModuleOp module) {
  llvm::json::Array described;
  for (const TilingFacts &facts : tilingFacts(module))
    if (facts.rows.size() * facts.warps.size() > 1)
      described.push_back(llvm::json::Object{{"place", facts.place},
                                             {"tiling", llvm::json::Array{facts.tiling.rows, facts.tiling.warps}},
                                             {"rows", llvm::json::Array(facts.rows)},
                                             {"warps", llvm::json::Array(facts.warps)}});
  return described;
}
