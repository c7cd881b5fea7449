// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/CAPI/Schedules.h"

using namespace mlir;
using namespace weft;

std::variant<std::vector<ScheduleChoice>, std::string> capi::readSchedules(const llvm::json::Object &object) {
  std::vector<ScheduleChoice> choices;
  for (const auto &[key, value] : object) {
    auto [number, name] = StringRef(key).split('.');
    std::optional<ScheduleRole> role = roleNamed(name);
    ScheduleChoice choice;
    if (!role || number.getAsInteger(10, choice.attend) || choice.attend < 0)
      return "expected the schedules' keys to be such as '0.forward', '0.backward.query', '0.backward.keys' or "
             "'0.backward.values', but got '" +
             key.str() + "'";
    choice.role = *role;
    const llvm::json::Array *numbers = value.getAsArray();
    int64_t *fields[] = {&choice.rows, &choice.columns, &choice.warps, &choice.stages, &choice.channels};
    size_t most = std::size(fields);
    bool fits = numbers && (numbers->size() == most || numbers->size() == most - 1);
    for (size_t i = 0; fits && i < numbers->size(); ++i) {
      std::optional<int64_t> number = (*numbers)[i].getAsInteger();
      fits = number.has_value();
      *fields[i] = number.value_or(0);
    }
    if (!fits)
      return "expected the schedule of '" + key.str() +
             "' to be four integers (rows, columns, warps, stages) or five (and channels of wide values)";
    choices.push_back(choice);
  }
  return choices;
}

llvm::json::Array capi::describeSchedules(ModuleOp module) {
  llvm::json::Array described;
  for (const ScheduleFacts &facts : scheduleFacts(module)) {
    attn::ScheduleAttr schedule = facts.schedule;
    llvm::json::Array numbers{schedule.getRows(), schedule.getColumns(), schedule.getWarps(), schedule.getStages()};
    if (schedule.getChannels())
      numbers.push_back(schedule.getChannels());
    described.push_back(llvm::json::Object{{"attend", facts.attend},
                                           {"role", roleName(facts.role)},
                                           {"schedule", std::move(numbers)},
                                           {"head_size", facts.headSize},
                                           {"value_size", facts.valueSize},
                                           {"element_bits", facts.elementBits},
                                           {"group", facts.group},
                                           {"window_tokens", facts.windowTokens}});
  }
  return described;
}
