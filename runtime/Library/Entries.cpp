// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Entries.h"

#include "runtime/Support/Format.h"

namespace weft::library {
namespace {

std::unexpected<Error> mismatch(std::string message) { return failure(StatusCode::Corrupt, std::move(message)); }

std::string namesOf(const Entries &entries) {
  std::string names;
  for (const auto &[name, parameters] : entries.parameters)
    names += weft::format("{}'{}'", names.empty() ? "" : ", ", name);
  return names.empty() ? "none" : names;
}

std::string spelled(const EntryParameter &parameter) {
  return weft::format("{} bytes at {}", parameter.bytes, parameter.offset);
}

/// A kernel's PTX ends where C ends a text, and so must not hold a null character.
Status checkText(std::string_view ptx) {
  size_t at = ptx.find('\0');
  return at == ptx.npos ? Status() : mismatch(weft::format("expected PTX, but got a null character at byte {}", at));
}

/// Whether the grid of an entry's programs is passed where the PTX declares its last parameters.
Status checkPrograms(const AddedParameters &added, std::string_view entry, const EntryParameters &declared) {
  for (size_t axis = 0; added.programs && axis < axesOfPrograms; ++axis) {
    const EntryParameter wanted{*added.programs + uint32_t(axis * sizeof(uint32_t)), sizeof(uint32_t)};
    const size_t number = declared.size() - axesOfPrograms + axis;
    if (number >= declared.size() || declared[number] != wanted)
      return mismatch(weft::format("expected the extents of the entry '{}''s programs to be its last parameters, from "
                                   "byte {} on, but the PTX declares others there",
                                   entry, *added.programs));
  }
  return {};
}

} // namespace

Entries entriesOf(std::string_view ptx) {
  return {entryParametersOf(ptx), addedParametersOf(ptx).value_or(AddedOfEntries())};
}

Status checkEntry(const Entries &entries, std::string_view entry, std::span<const ArgumentType> types) {
  auto found = entries.parameters.find(entry);
  if (found == entries.parameters.end())
    return mismatch(weft::format("expected an entry '{}', but the PTX has {}", entry, namesOf(entries)));
  const EntryParameters &declared = found->second;
  auto added = entries.added.find(std::string(entry));
  size_t own = declared.size() - std::min(declared.size(), added == entries.added.end() ? 0 : added->second.count());
  if (own != types.size())
    return mismatch(weft::format("expected the {} parameters that the PTX declares for the entry '{}', but got {}", own,
                                 entry, types.size()));
  uint32_t end = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    uint32_t bytes = types[i].parameterBytes();
    EntryParameter given{(end + bytes - 1) / bytes * bytes, bytes};
    if (given != declared[i])
      return mismatch(
          weft::format("expected parameter {} of the entry '{}' to be {}, as the PTX declares it, but '{}' is {}", i,
                       entry, spelled(declared[i]), types[i].spelling, spelled(given)));
    end = given.offset + given.bytes;
  }
  return added == entries.added.end() ? Status() : checkPrograms(added->second, entry, declared);
}

Status checkVariants(const Manifest &manifest, const std::vector<std::string_view> &parts) {
  std::map<uint32_t, Entries> known;
  for (const Kernel &kernel : manifest.kernels) {
    std::vector<ArgumentType> types;
    for (const Argument &argument : kernel.arguments)
      types.push_back(argument.type);
    for (const Variant &variant : kernel.variants) {
      auto [part, fresh] = known.try_emplace(variant.part);
      Status status = fresh ? checkText(parts[variant.part]) : Status();
      if (fresh)
        part->second = entriesOf(parts[variant.part]);
      if (status)
        status = checkEntry(part->second, variant.entry, types);
      if (!status)
        return failure(status.error().code,
                       weft::format("{}: {}, of the kernel '{}'", manifest.parts[variant.part].file,
                                    status.error().message, kernel.name));
    }
  }
  return {};
}

} // namespace weft::library
