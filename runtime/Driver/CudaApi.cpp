// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Driver/CudaApi.h"

#include "runtime/Support/Format.h"
#include <cstdlib>
#include <dlfcn.h>

namespace weft::driver::cuda {
namespace {

StatusCode statusOf(CUresult result) {
  switch (result) {
  case errorInvalidValue:
    return StatusCode::InvalidArgument;
  case errorOutOfMemory:
    return StatusCode::OutOfMemory;
  case errorInvalidImage:
  case errorInvalidPtx:
    return StatusCode::Corrupt;
  case errorNoBinaryForGpu:
  case errorUnsupportedPtxVersion:
    return StatusCode::WrongTarget;
  case errorNotFound:
    return StatusCode::NotFound;
  default:
    return StatusCode::DriverError;
  }
}

/// The library stays loaded for the life of the process: drivers do not survive being unloaded.
Result<Api> load() {
  const char *chosen = std::getenv("WEFT_LIBCUDA");
  std::string path = chosen && *chosen ? chosen : "libcuda.so.1";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return failure(StatusCode::NotFound, weft::format("no CUDA driver: {}", dlerror()));
  Api api;
#define WEFT_CUDA_LOAD(symbol, member, parameters)                                                                     \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, #symbol));                                        \
  if (!api.member)                                                                                                     \
    return failure(StatusCode::DriverError,                                                                            \
                   weft::format("the CUDA driver '{}' lacks '{}': it is too old", path, #symbol));
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_LOAD)
#undef WEFT_CUDA_LOAD
  api.launchEx = reinterpret_cast<decltype(api.launchEx)>(dlsym(library, "cuLaunchKernelEx"));
  api.encodeTiled = reinterpret_cast<decltype(api.encodeTiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
  if (Status status = check(api, api.init(0), "cannot initialise the CUDA driver"); !status)
    return std::unexpected(status.error());
  return api;
}

} // namespace

Result<const Api *> api() {
  static const Result<Api> loaded = load();
  if (!loaded)
    return std::unexpected(loaded.error());
  return &*loaded;
}

Status check(const Api &api, CUresult result, const std::string &doing) {
  if (result == success)
    return {};
  const char *name = nullptr, *text = nullptr;
  api.errorName(result, &name);
  api.errorString(result, &text);
  return failure(statusOf(result), weft::format("{}: {} ({})", doing, text ? text : "unknown error",
                                                name ? name : std::to_string(result)));
}

} // namespace weft::driver::cuda
