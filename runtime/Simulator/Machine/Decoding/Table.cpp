// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Decoding/Table.h"

#include <unordered_map>

namespace weft::simulator::machine {
namespace {

/// One slot of a row's modifier list.
struct Slot {
  std::string_view name;
  std::vector<std::string_view> words;
  bool optional = false;
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<Slot> parseSlots(std::string_view text) {
  std::vector<Slot> slots;
  for (std::string_view part : split(text, ' ')) {
    Slot slot;
    if (part.ends_with('?')) {
      slot.optional = true;
      part.remove_suffix(1);
    }
    size_t equals = part.find('=');
    slot.name = part.substr(0, std::min(equals, part.size()));
    slot.words = split(equals == std::string_view::npos ? part : part.substr(equals + 1), '|');
    slots.push_back(std::move(slot));
  }
  return slots;
}

struct Table {
  std::unordered_map<std::string_view, std::vector<const Form *>> byMnemonic;
  std::unordered_map<const Form *, std::vector<Slot>> slots;

  Table() {
    for (std::span<const Form> family : allForms())
      for (const Form &form : family) {
        byMnemonic[form.mnemonic].push_back(&form);
        slots[&form] = parseSlots(form.modifiers);
      }
  }
};

const Table &table() {
  static const Table instance;
  return instance;
}

} // namespace

std::span<const Form *const> formsOf(std::string_view mnemonic) {
  auto found = table().byMnemonic.find(mnemonic);
  if (found == table().byMnemonic.end())
    return {};
  return found->second;
}

MatchResult matchModifiers(const Form &form, const std::vector<std::string_view> &modifiers,
                           std::vector<std::pair<std::string_view, std::string_view>> &chosen) {
  const std::vector<Slot> &slots = table().slots.at(&form);
  chosen.clear();
  std::vector<bool> taken(slots.size());
  MatchResult result;
  for (std::string_view modifier : modifiers) {
    size_t at = 0;
    for (; at < slots.size(); ++at)
      if (!taken[at] && std::find(slots[at].words.begin(), slots[at].words.end(), modifier) != slots[at].words.end())
        break;
    if (at == slots.size()) {
      result.got = "'." + std::string(modifier) + "'";
      break;
    }
    taken[at] = true;
    chosen.emplace_back(slots[at].name, modifier);
    ++result.depth;
  }
  for (size_t at = 0; at < slots.size(); ++at) {
    if (taken[at] || slots[at].optional)
      continue;
    if (result.got.empty())
      result.got = "none";
    for (std::string_view word : slots[at].words)
      result.expected += (result.expected.empty() ? "'." : ", '.") + std::string(word) + "'";
    return result;
  }
  if (!result.got.empty()) {
    result.expected = "no further modifier";
    return result;
  }
  result.matched = true;
  return result;
}

} // namespace weft::simulator::machine
