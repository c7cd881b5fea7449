// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reads and composes manifest.json. The order of checks decides which of several defects is named: first whether this
// is a manifest of ours at all, then whether it is whole, then what it says.
#include "runtime/Library/Manifest.h"

#include "runtime/Library/Digest.h"
#include "runtime/Library/GridExpression.h"
#include "runtime/Library/Json.h"
#include "runtime/Library/Version.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <set>

namespace weft::library {
namespace {

using nlohmann::json;

constexpr size_t maxKernels = 65536, maxPrograms = 4096, maxVariants = 4096, maxArguments = 1024, maxParts = 65536;
/// CUDA passes at most this much by parameters (sm_70 and newer).
constexpr size_t maxParameterBytes = 32764;

std::string digestOf(json document) {
  document.erase("digest");
  return "sha256:" + sha256(canonicalJson(document));
}

Part readPart(const Cursor &at) {
  Part part;
  part.file = at.at("file").name("_.-");
  part.bytes = at.at("bytes").integer(0, maxPartBytes);
  part.sha256 = at.at("sha256").string(64);
  auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!at.failed() && (part.sha256.size() != 64 || !std::ranges::all_of(part.sha256, hex)))
    at.at("sha256").wrong("expected 64 lower-case hexadecimal digits");
  if (part.file == manifestName)
    at.at("file").wrong("the manifest cannot be a part of itself");
  return part;
}

Argument readArgument(const Cursor &at) {
  Argument argument;
  argument.name = at.at("name").name();
  Result<ArgumentType> type = parseArgumentType(at.at("type").string(32));
  if (type)
    argument.type = *type;
  else
    at.at("type").wrong(type.error().message);
  return argument;
}

Constant readConstant(const Cursor &at) {
  const json &value = at.value();
  if (value.is_null())
    return std::monostate{};
  if (value.is_boolean())
    return value.get<bool>();
  if (value.is_number_integer())
    return at.integer(INT64_MIN, INT64_MAX);
  if (value.is_number_float())
    return value.get<double>();
  return at.string();
}

Guard readGuard(const Cursor &at, const std::vector<Argument> &arguments) {
  Guard guard;
  std::string name = at.at("argument").name();
  auto found = std::ranges::find(arguments, name, &Argument::name);
  if (!at.failed() && found == arguments.end())
    at.at("argument").wrong(weft::format("no argument is named '{}'", name));
  if (at.failed())
    return guard;
  guard.argument = found - arguments.begin();
  bool real = !found->type.pointer && (found->type.kind == ScalarKind::Float || found->type.kind == ScalarKind::BFloat);
  if (real)
    at.at("argument")
        .wrong(weft::format("expected an integer or a pointer, but '{}' is '{}'", name, found->type.spelling));
  if (at.has("divisible_by"))
    guard.divisibleBy = at.at("divisible_by").integer(1, int64_t(1) << 32);
  if (at.has("equals"))
    guard.equals = at.at("equals").integer(INT64_MIN, INT64_MAX);
  return guard;
}

Resources readResources(const Cursor &at) {
  auto count = [&](const char *key) { return static_cast<uint32_t>(at.at(key).integer(0, 1 << 24)); };
  return {count("registers"), count("spill_store_bytes"), count("spill_load_bytes"), count("shared_bytes")};
}

std::array<std::string, 3> readGrid(const Cursor &at, const Kernel &kernel, const Variant &variant) {
  std::array<std::string, 3> grid;
  size_t count = 0;
  auto known = [&](std::string_view name) {
    auto argument = std::ranges::find(kernel.arguments, name, &Argument::name);
    if (argument != kernel.arguments.end())
      return !argument->type.pointer;
    auto constant = variant.constants.find(std::string(name));
    return constant != variant.constants.end() && std::holds_alternative<int64_t>(constant->second);
  };
  at.each(3, [&](const Cursor &element) {
    grid[count] = element.string(1000);
    if (Status status = checkGrid(grid[count], known); !status && !element.failed())
      element.wrong(status.error().message);
    ++count;
  });
  if (!at.failed() && count != 3)
    at.wrong(weft::format("expected 3 expressions, but got {}", count));
  return grid;
}

driver::Target readTarget(const Cursor &at) {
  Result<driver::Target> target = driver::parseTarget(at.string(16));
  if (!target)
    at.wrong(target.error().message);
  return target.value_or(driver::Target{});
}

/// The index of the part that is named.
uint32_t readPartName(const Cursor &at, const std::vector<Part> &parts) {
  std::string file = at.name("_.-");
  auto part = std::ranges::find(parts, file, &Part::file);
  if (part == parts.end())
    at.wrong(weft::format("no part is named '{}'", file));
  return part - parts.begin();
}

Variant readVariant(const Cursor &at, const Kernel &kernel, const std::vector<Part> &parts) {
  Variant variant;
  variant.target = readTarget(at.at("target"));
  variant.part = readPartName(at.at("ptx"), parts);
  variant.entry = at.at("entry").name();
  variant.numWarps = at.at("num_warps").integer(1, 32);
  if (at.has("num_stages"))
    variant.numStages = at.at("num_stages").integer(0, 64);
  variant.sharedBytes = at.at("shared_bytes").integer(0, 1 << 20);
  if (at.has("cluster")) {
    size_t axis = 0;
    at.at("cluster").each(3, [&](const Cursor &extent) { variant.cluster[axis++] = extent.integer(1, 16); });
  }
  if (at.has("constants"))
    at.at("constants").eachMember(maxArguments, [&](const std::string &name, const Cursor &value) {
      variant.constants[name] = readConstant(value);
    });
  if (at.has("guards"))
    at.at("guards").each(maxArguments,
                         [&](const Cursor &guard) { variant.guards.push_back(readGuard(guard, kernel.arguments)); });
  if (at.has("grid"))
    variant.grid.push_back(readGrid(at.at("grid"), kernel, variant));
  if (at.has("resources"))
    variant.resources = readResources(at.at("resources"));
  return variant;
}

/// Records an error where two elements have the same name.
template <typename T, typename Name> void refuseTwins(const Cursor &at, const std::vector<T> &elements, Name name) {
  std::set<std::string_view> seen;
  for (const T &element : elements)
    if (!seen.insert(std::invoke(name, element)).second)
      return at.wrong(weft::format("two are named '{}'", std::invoke(name, element)));
}

Kernel readKernel(const Cursor &at, const std::vector<Part> &parts) {
  Kernel kernel;
  kernel.name = at.at("name").name("_$.");
  if (at.has("source")) {
    Cursor source = at.at("source");
    kernel.sourceFile = source.at("file").string();
    kernel.sourceLine = source.at("line").integer(0, INT32_MAX);
    kernel.sourceSha256 = source.at("sha256").string(64);
  }
  at.at("arguments").each(maxArguments, [&](const Cursor &argument) {
    kernel.arguments.push_back(readArgument(argument));
  });
  refuseTwins(at.at("arguments"), kernel.arguments, &Argument::name);
  at.at("variants").each(maxVariants, [&](const Cursor &variant) {
    kernel.variants.push_back(readVariant(variant, kernel, parts));
  });
  if (kernel.variants.empty())
    at.at("variants").wrong("expected at least one variant");
  size_t bytes = 0;
  for (const Argument &argument : kernel.arguments)
    bytes += argument.type.parameterBytes();
  if (bytes > maxParameterBytes)
    at.at("arguments")
        .wrong(weft::format("expected at most {} bytes of parameters, but got {}", maxParameterBytes, bytes));
  return kernel;
}

/// Refuses a cubin that is of other PTX than the library's, or could not have been assembled of it.
void checkOrigin(const Cursor &at, const Cubin &cubin, const Manifest &manifest) {
  const Part &ptx = manifest.parts[cubin.ptx];
  if (at.at("ptx_sha256").string(64) != ptx.sha256)
    return at.at("ptx_sha256")
        .wrong(weft::format("stale: the cubin was assembled of another PTX than '{}': compile the library again",
                            ptx.file));
  bool used = false;
  for (const Kernel &kernel : manifest.kernels)
    for (const Variant &variant : kernel.variants) {
      if (variant.part == cubin.part)
        return at.at("file").wrong(
            weft::format("'{}' is the PTX of '{}'", manifest.parts[cubin.part].file, kernel.name));
      if (variant.part != cubin.ptx)
        continue;
      used = true;
      bool same = variant.target.suffix ? variant.target == cubin.target
                                        : driver::runsOn(variant.target, cubin.target.major, cubin.target.minor);
      if (!same)
        return at.at("target").wrong(weft::format("'{}' is PTX for {}, which cannot be assembled for {}", ptx.file,
                                                  driver::targetName(variant.target),
                                                  driver::targetName(cubin.target)));
    }
  if (!used)
    at.at("ptx").wrong(weft::format("'{}' is the PTX of no kernel", ptx.file));
}

Cubin readCubin(const Cursor &at, const Manifest &manifest) {
  Cubin cubin;
  cubin.target = readTarget(at.at("target"));
  cubin.part = readPartName(at.at("file"), manifest.parts);
  cubin.ptx = readPartName(at.at("ptx"), manifest.parts);
  if (at.failed())
    return cubin;
  checkOrigin(at, cubin, manifest);
  for (const Cubin &other : manifest.cubins)
    if (!at.failed() && (other.part == cubin.part || (other.ptx == cubin.ptx && other.target == cubin.target)))
      at.wrong(weft::format("two are of '{}' for {}, or in one file", manifest.parts[cubin.ptx].file,
                            driver::targetName(cubin.target)));
  return cubin;
}

/// Refuses what is not a manifest of this schema and version, or was changed after it was written.
void checkSeal(const Cursor &at) {
  if (!at.value().is_object() || !at.has("schema") || at.at("schema").value() != schemaName)
    return at.wrong(weft::format("not a Weft library: expected \"schema\": \"{}\"", schemaName));
  int64_t version = at.at("schema_version").integer(1, INT32_MAX);
  if (!at.failed() && version != schemaVersion)
    return at.at("schema_version")
        .wrong(weft::format("expected version {}, but got {}: compile the library with this "
                            "version of Weft, or open it with the one that made it",
                            schemaVersion, version));
  std::string stored = at.at("digest").string(128);
  if (!at.failed() && stored != digestOf(at.value()))
    at.at("digest").wrong("does not match what the manifest says: it was altered after it was written");
}

} // namespace

Result<Manifest> parseManifest(std::string_view text) {
  if (text.size() > maxManifestBytes)
    return failure(StatusCode::Corrupt,
                   weft::format("expected at most {} bytes, but got {}", maxManifestBytes, text.size()));
  Result<json> document = parseJson(text);
  if (!document)
    return std::unexpected(document.error());
  std::optional<Error> error;
  Cursor root(*document, error);
  checkSeal(root);
  if (error)
    return std::unexpected(*error);

  Manifest manifest;
  manifest.weftVersion = root.at("weft_version").string(64);
  root.at("parts").each(maxParts, [&](const Cursor &part) { manifest.parts.push_back(readPart(part)); });
  refuseTwins(root.at("parts"), manifest.parts, &Part::file);
  root.at("kernels").each(
      maxKernels, [&](const Cursor &kernel) { manifest.kernels.push_back(readKernel(kernel, manifest.parts)); });
  refuseTwins(root.at("kernels"), manifest.kernels, &Kernel::name);
  if (root.has("cubins") && !error)
    root.at("cubins").each(maxParts,
                           [&](const Cursor &cubin) { manifest.cubins.push_back(readCubin(cubin, manifest)); });
  if (root.has("programs") && !error)
    root.at("programs").each(maxPrograms, [&](const Cursor &program) {
      manifest.programs.push_back(readProgram(program, manifest.kernels));
    });
  refuseTwins(root, manifest.programs, &Program::name);
  if (error)
    return std::unexpected(*error);
  return manifest;
}

Result<std::string> composeManifest(std::string_view text, const std::vector<File> &files) {
  Result<json> parsed = parseJson(text);
  if (!parsed)
    return std::unexpected(parsed.error());
  json &document = *parsed;
  if (!document.is_object())
    return failure(StatusCode::InvalidArgument, "expected a JSON object that holds 'kernels'");
  document["schema"] = schemaName;
  document["schema_version"] = schemaVersion;
  document["weft_version"] = version;
  document["parts"] = json::array();
  for (const File &file : files)
    document["parts"].push_back({{"file", file.name}, {"bytes", file.bytes.size()}, {"sha256", sha256(file.bytes)}});
  document["digest"] = digestOf(document);
  std::string complete = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  return parseManifest(complete).transform([&](const Manifest &) { return complete; });
}

std::optional<size_t> findKernel(const Manifest &manifest, std::string_view name) {
  auto found = std::ranges::find(manifest.kernels, name, &Kernel::name);
  return found == manifest.kernels.end() ? std::nullopt : std::optional<size_t>(found - manifest.kernels.begin());
}

std::optional<size_t> findProgram(const Manifest &manifest, std::string_view name) {
  auto found = std::ranges::find(manifest.programs, name, &Program::name);
  return found == manifest.programs.end() ? std::nullopt : std::optional<size_t>(found - manifest.programs.begin());
}

} // namespace weft::library
