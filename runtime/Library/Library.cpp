// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Library.h"

#include "runtime/Library/Digest.h"

#include "runtime/Support/Format.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::library {
namespace {

namespace fs = std::filesystem;

/// A file descriptor that closes itself.
struct Descriptor {
  int number;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
};

/// Reads a plain file of at most `limit` bytes. A symbolic link is refused: a library holds its own parts.
Result<std::string> readFile(const fs::path &path, uint64_t limit) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0)
    return failure(StatusCode::Corrupt, errno == ELOOP ? "is a symbolic link" : std::strerror(errno));
  struct stat facts{};
  if (fstat(file.number, &facts) != 0 || !S_ISREG(facts.st_mode))
    return failure(StatusCode::Corrupt, "is no plain file");
  if (static_cast<uint64_t>(facts.st_size) > limit)
    return failure(StatusCode::Corrupt, weft::format("expected at most {} bytes, but got {}", limit, facts.st_size));
  std::string bytes(facts.st_size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = read(file.number, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return failure(StatusCode::Corrupt, got < 0 ? std::strerror(errno) : "became shorter while it was read");
    done += got;
  }
  return bytes;
}

/// The bytes of a part, where they are what the manifest says.
Result<std::string> readPart(const fs::path &directory, const Part &part) {
  Result<std::string> bytes = readFile(directory / part.file, part.bytes);
  if (!bytes)
    return bytes;
  if (bytes->size() != part.bytes)
    return failure(StatusCode::Corrupt,
                   weft::format("cut short: expected {} bytes, but got {}", part.bytes, bytes->size()));
  if (sha256(*bytes) != part.sha256)
    return failure(StatusCode::Corrupt, "altered: its SHA-256 is not the manifest's");
  return bytes;
}

Status failed(const std::string &doing, const fs::path &path) {
  StatusCode code = errno == ENOENT ? StatusCode::NotFound : StatusCode::InvalidArgument;
  return failure(code, weft::format("cannot {} '{}': {}", doing, path.string(), std::strerror(errno)));
}

Status writeFile(const fs::path &path, std::string_view bytes) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.number < 0)
    return failed("create", path);
  for (size_t done = 0; done < bytes.size();) {
    ssize_t put = write(file.number, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno != EINTR)
      return failed("write", path);
    done += put > 0 ? put : 0;
  }
  return fsync(file.number) == 0 ? Status() : failed("write", path);
}

/// A directory beside `path` that goes away with its contents.
struct Scratch {
  fs::path path;
  explicit Scratch(const fs::path &beside) {
    std::string pattern = beside.string() + ".XXXXXX";
    if (mkdtemp(pattern.data()))
      path = pattern;
  }
  Scratch(const Scratch &) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty())
      fs::remove_all(path, ignored);
  }
};

/// Whether `path` may be replaced: nothing there, an empty directory, or an older library. An altered library counts
/// too, as long as its manifest names the schema.
bool replaceable(const fs::path &path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return true;
  if (!fs::is_directory(fs::symlink_status(path, error)))
    return false;
  if (fs::is_empty(path, error))
    return true;
  Result<std::string> manifest = readFile(path / manifestName, maxManifestBytes);
  return manifest && manifest->contains(weft::format("\"{}\"", schemaName));
}

/// Puts `fresh` in the place of `path`; what was there ends up at `fresh`.
Status swapIn(const fs::path &fresh, const fs::path &path) {
  if (rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  // rename refuses a directory that is not empty: exchange the two in one step instead
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  return failed("put the library at", path);
}

} // namespace

Result<Library> openLibrary(const fs::path &path) {
  auto refuse = [&](const Error &error, std::string_view file) {
    return failure(error.code,
                   weft::format("cannot open the library '{}': {}: {}", path.string(), file, error.message));
  };
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return failure(StatusCode::NotFound,
                   weft::format("cannot open the library '{}': there is no such directory", path.string()));
  if (!fs::exists(path / manifestName, ignored))
    return failure(StatusCode::Corrupt, weft::format("cannot open the library '{}': not a Weft library: it holds no {}",
                                                     path.string(), manifestName));
  Library library{path.string(), {}, {}, {}};
  Result<std::string> text = readFile(path / manifestName, maxManifestBytes);
  if (!text)
    return refuse(text.error(), manifestName);
  Result<Manifest> manifest = parseManifest(*text);
  if (!manifest)
    return refuse(manifest.error(), manifestName);
  for (const Part &part : manifest->parts) {
    Result<std::string> bytes = readPart(path, part);
    if (!bytes)
      return refuse(bytes.error(), part.file);
    library.parts.push_back(std::move(*bytes));
  }
  library.manifest = std::move(*manifest);
  library.manifestText = std::move(*text);
  return library;
}

Status writeLibrary(const fs::path &requested, std::string_view json, const std::vector<File> &files) {
  fs::path path = requested.has_filename() ? requested : requested.parent_path();
  if (path.empty())
    return failure(StatusCode::InvalidArgument,
                   "expected the name of a directory to write the library to, but got none");
  Result<std::string> manifest = composeManifest(json, files);
  if (!manifest)
    return failure(StatusCode::InvalidArgument,
                   weft::format("cannot write the library '{}': {}", path.string(), manifest.error().message));
  if (!replaceable(path))
    return failure(
        StatusCode::InvalidArgument,
        weft::format("cannot write the library '{}': something that is no Weft library is there", path.string()));
  std::error_code error;
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), error);
  Scratch scratch(path);
  if (scratch.path.empty())
    return failed("make a directory beside", path);
  for (const File &file : files)
    if (Status status = writeFile(scratch.path / file.name, file.bytes); !status)
      return status;
  if (Status status = writeFile(scratch.path / manifestName, *manifest); !status)
    return status;
  chmod(scratch.path.c_str(), 0755);
  return swapIn(scratch.path, path);
}

} // namespace weft::library
