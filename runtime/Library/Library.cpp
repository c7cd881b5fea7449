// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Library.h"

#include "runtime/Library/Cubin.h"
#include "runtime/Library/Digest.h"
#include "runtime/Library/Entries.h"

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

/// Reads a plain file of at most `limit` bytes in an open directory. A symbolic link is refused: a library holds its
/// own parts.
Result<std::string> readFile(const Descriptor &directory, const std::string &name, uint64_t limit) {
  Descriptor file(openat(directory.number, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
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

Descriptor openDirectory(const fs::path &path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// The bytes of a part, where they are what the manifest says.
Result<std::string> readPart(const Descriptor &directory, const Part &part) {
  Result<std::string> bytes = readFile(directory, part.file, part.bytes);
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

/// Whether `path` may be replaced: nothing there, an empty directory, or an older library and nothing else. An altered
/// library counts too, as long as its manifest names the schema. InvalidArgument says what is there.
Status checkReplaceable(const fs::path &path) {
  auto refuse = [&](const std::string &what) {
    return failure(StatusCode::InvalidArgument,
                   weft::format("cannot write the library '{}': {} is there", path.string(), what));
  };
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return {};
  if (!fs::is_directory(fs::symlink_status(path, error)))
    return refuse("something that is no Weft library");
  if (fs::is_empty(path, error))
    return {};
  Result<std::string> manifest = readFile(openDirectory(path), std::string(manifestName), maxManifestBytes);
  if (!manifest || !manifest->contains(weft::format("\"{}\"", schemaName)))
    return refuse("something that is no Weft library");
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error)) {
    std::string name = entry.path().filename().string(), kind = entry.path().extension().string();
    bool own = kind == ".ptx" || kind == ".cubin" || kind == ".mlir" || name == manifestName ||
               manifest->contains(weft::format("\"{}\"", name));
    if (!own || entry.is_directory(error))
      return refuse(weft::format("'{}', which is no part of a Weft library,", name));
  }
  return {};
}

/// Puts `fresh` in the place of `path`; what was there ends up at `fresh`.
Status swapIn(const fs::path &fresh, const fs::path &path) {
  if (rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  // rename refuses a directory that is not empty: exchange the two in one step instead
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS)
    return failed("put the library at", path);
  // a file system that cannot exchange, as over a network: for one moment there is no library
  fs::path aside = fresh.string() + ".old";
  if (rename(path.c_str(), aside.c_str()) != 0 || rename(fresh.c_str(), path.c_str()) != 0)
    return failed("put the library at", path);
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  return {};
}

/// Reads the library in an open directory; `path` is for messages.
Result<Library> readLibrary(const Descriptor &directory, const std::string &path) {
  auto refuse = [&](const Error &error, std::string_view file) {
    return failure(error.code, weft::format("cannot open the library '{}': {}: {}", path, file, error.message));
  };
  if (faccessat(directory.number, std::string(manifestName).c_str(), F_OK, 0) != 0)
    return failure(StatusCode::Corrupt, weft::format("cannot open the library '{}': not a Weft library: it holds no {}",
                                                     path, manifestName));
  Library library{path, {}, {}, {}};
  Result<std::string> text = readFile(directory, std::string(manifestName), maxManifestBytes);
  if (!text)
    return refuse(text.error(), manifestName);
  Result<Manifest> manifest = parseManifest(*text);
  if (!manifest)
    return refuse(manifest.error(), manifestName);
  for (const Part &part : manifest->parts) {
    Result<std::string> bytes = readPart(directory, part);
    if (!bytes)
      return refuse(bytes.error(), part.file);
    library.parts.push_back(std::move(*bytes));
  }
  for (const Cubin &cubin : manifest->cubins)
    if (Status status = checkCubin(*manifest, cubin, library.parts[cubin.part]); !status)
      return refuse(status.error(), manifest->parts[cubin.part].file);
  if (Status status = checkVariants(*manifest, {library.parts.begin(), library.parts.end()}); !status)
    return failure(status.error().code, weft::format("cannot open the library '{}': {}", path, status.error().message));
  library.manifest = std::move(*manifest);
  library.manifestText = std::move(*text);
  return library;
}

/// Whether `path` is now another directory than the open one: a writer has replaced the library.
bool replaced(const Descriptor &directory, const fs::path &path) {
  struct stat opened{}, current{};
  return fstat(directory.number, &opened) == 0 && stat(path.c_str(), &current) == 0 &&
         (opened.st_ino != current.st_ino || opened.st_dev != current.st_dev);
}

} // namespace

Result<Library> openLibrary(const fs::path &path) {
  constexpr int attempts = 100; // against a writer that replaces the library over and over
  for (int attempt = 1;; ++attempt) {
    Descriptor directory = openDirectory(path);
    if (directory.number < 0)
      return failure(StatusCode::NotFound,
                     weft::format("cannot open the library '{}': {}", path.string(),
                                  errno == ENOENT ? "there is no such directory" : std::strerror(errno)));
    Result<Library> library = readLibrary(directory, path.string());
    if (library || attempt == attempts || !replaced(directory, path))
      return library;
  }
}

namespace {

/// A manifest's text and what it says, of files whose machine code is what it says of them.
struct Composed {
  std::string text;
  Manifest manifest;
};
Result<Composed> compose(std::string_view json, const std::vector<File> &files) {
  Result<std::string> text = composeManifest(json, files);
  Result<Manifest> manifest = text ? parseManifest(*text) : std::unexpected(text.error());
  if (!manifest)
    return std::unexpected(manifest.error());
  for (const Cubin &cubin : manifest->cubins)
    if (Status status = checkCubin(*manifest, cubin, files[cubin.part].bytes); !status)
      return failure(status.error().code, weft::format("{}: {}", files[cubin.part].name, status.error().message));
  std::vector<std::string_view> parts;
  for (const File &file : files)
    parts.emplace_back(file.bytes);
  if (Status status = checkVariants(*manifest, parts); !status)
    return std::unexpected(status.error());
  return Composed{std::move(*text), std::move(*manifest)};
}

} // namespace

Result<Library> makeLibrary(const std::string &name, std::string_view json, const std::vector<File> &files) {
  Result<Composed> manifest = compose(json, files);
  if (!manifest)
    return failure(StatusCode::InvalidArgument,
                   weft::format("cannot make the library '{}': {}", name, manifest.error().message));
  Library library{name, std::move(manifest->manifest), std::move(manifest->text), {}};
  for (const File &file : files)
    library.parts.push_back(file.bytes);
  return library;
}

Status writeLibrary(const fs::path &requested, std::string_view json, const std::vector<File> &files) {
  fs::path path = requested.has_filename() ? requested : requested.parent_path();
  if (path.empty() || path.filename() == "." || path.filename() == "..")
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected the name of a directory to write the library to, but got {}",
                                path.empty() ? "none" : weft::format("'{}'", path.string())));
  Result<Composed> manifest = compose(json, files);
  if (!manifest)
    return failure(StatusCode::InvalidArgument,
                   weft::format("cannot write the library '{}': {}", path.string(), manifest.error().message));
  if (Status status = checkReplaceable(path); !status)
    return status;
  std::error_code error;
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), error);
  Scratch scratch(path);
  if (scratch.path.empty())
    return failed("make a directory beside", path);
  for (const File &file : files)
    if (Status status = writeFile(scratch.path / file.name, file.bytes); !status)
      return status;
  if (Status status = writeFile(scratch.path / manifestName, manifest->text); !status)
    return status;
  chmod(scratch.path.c_str(), 0755);
  return swapIn(scratch.path, path);
}

} // namespace weft::library
