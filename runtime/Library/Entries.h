// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What PTX declares of its entries, beside what others say of them. Nothing at a launch tells parameters of one size from
// those of another: a kernel that is given others reads them as its own, and computes with that.
#pragma once

#include "runtime/Library/Manifest.h"
#include "runtime/Support/EntryParameters.h"
#include "runtime/Support/Programs.h"

#include <span>
#include <string_view>

namespace weft::library {

/// The entries of PTX text.
struct Entries {
  std::map<std::string, EntryParameters, std::less<>> parameters;
  AddedOfEntries added; ///< by launches; none where a later Weft describes them, which whoever loads the PTX refuses
};
Entries entriesOf(std::string_view ptx);

/// Whether an entry takes arguments of these types, each at its natural alignment, and behind them what launches add alone.
/// Corrupt with what was expected and what came, for an entry that is not there too.
Status checkEntry(const Entries &entries, std::string_view entry, std::span<const ArgumentType> types);

/// Whether the PTX of every variant, the text of its part, has the entry that the manifest says, with its arguments.
/// Corrupt with the file, what was expected and what came.
Status checkVariants(const Manifest &manifest, const std::vector<std::string_view> &parts);

} // namespace weft::library
