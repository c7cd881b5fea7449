// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Support/TextGuard.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace llvm;

/// Where the text has `array<` followed by `index`, or npos.
static size_t findIndexArray(StringRef text) {
  for (size_t at = text.find("array<"); at != StringRef::npos; at = text.find("array<", at + 1))
    if (text.substr(at + 6).ltrim().starts_with("index"))
      return at;
  return StringRef::npos;
}

/// Where the text has a '#' and a number of too many digits, or npos.
static size_t findHugeNumber(StringRef text) {
  constexpr size_t mostDigits = 5;
  for (size_t at = text.find('#'); at != StringRef::npos; at = text.find('#', at + 1))
    if (text.drop_front(at + 1).take_while(isDigit).size() > mostDigits)
      return at;
  return StringRef::npos;
}

std::optional<weft::TextHazard> weft::findTextHazard(StringRef text) {
  size_t array = findIndexArray(text), number = findHugeNumber(text), at = std::min(array, number);
  if (at == StringRef::npos)
    return std::nullopt;
  StringRef before = text.take_front(at);
  auto line = static_cast<unsigned>(before.count('\n') + 1);
  // rfind gives npos, which is -1, where the text's first line has the hazard.
  auto column = static_cast<unsigned>(at - before.rfind('\n'));
  const char *message = at == array ? "expected an array of integers or floats of fixed width, but got one of 'index'"
                                    : "expected the number of a result, but got one of more than 5 digits";
  return TextHazard{line, column, message};
}
