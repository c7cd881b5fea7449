// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A PTX library on disk: opening one, and writing one.
#pragma once

#include "runtime/Library/Manifest.h"

#include <filesystem>

namespace weft::library {

/// An opened library: everything is in memory and was checked; the directory is not needed any more.
struct Library {
  std::string path; ///< as it was given
  Manifest manifest;
  std::string manifestText;
  std::vector<std::string> parts; ///< contents, in the order of manifest.parts
};

/// Opens the directory `path`. NotFound where there is none. Corrupt, naming the file and the reason, where it is no
/// Weft library, or its manifest is refused (parseManifest), or a part is missing, no plain file, cut short or altered.
Result<Library> openLibrary(const std::filesystem::path &path);

/// A library that was never on disk: `json` and `files` as `writeLibrary` takes them, checked as strictly; `name`
/// stands for its path in messages. InvalidArgument where they make no library.
Result<Library> makeLibrary(const std::string &name, std::string_view json, const std::vector<File> &files);

/// Writes a library so that `path` is at every moment either what it was or whole: into a new directory beside it,
/// then by renaming. Replaces an older library or an empty directory; InvalidArgument where `path` is something else,
/// which is left as it is. `json` holds the kernels (composeManifest).
Status writeLibrary(const std::filesystem::path &path, std::string_view json, const std::vector<File> &files);

} // namespace weft::library
