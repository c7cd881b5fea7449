// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the opaque handles of weft.h are, and how a C++ result becomes a status and a text.
#pragma once

#include "runtime/CAPI/weft.h"
#include "runtime/Driver/Driver.h"
#include "runtime/Launch/Launcher.h"
#include "runtime/Library/Entries.h"
#include "runtime/Library/Library.h"
#include "runtime/Support/Status.h"

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

struct weft_error {
  std::string message;
};

struct weft_device {
  std::shared_ptr<weft::driver::Device> device;
  std::string name;
};

struct weft_module {
  std::shared_ptr<weft::driver::Module> module;
  weft::library::Entries entries;
};

struct weft_kernel {
  std::shared_ptr<weft::driver::Kernel> kernel;
  std::string entry;
  std::vector<weft::library::ArgumentType> types;
  uint32_t sharedBytes;
};

struct weft_library {
  std::shared_ptr<const weft::library::Library> library;
  std::mutex guard;
  /// Each keeps its device open, so that the address of one is never that of another.
  std::map<const weft::driver::Device *, std::shared_ptr<weft::launch::Launcher>> launchers;
  std::vector<std::vector<std::string>> targets; ///< names by kernel and variant, for weft_variant_info
};

struct weft_program {
  std::shared_ptr<const weft::launch::Plan> plan;
  std::string target;
};

namespace weft::capi {

/// The launcher of a library on a device, made at the first use there.
std::shared_ptr<launch::Launcher> launcherOf(weft_library &library, const weft_device &device);
/// A library's handle, for the caller to close.
std::unique_ptr<weft_library> handleOf(library::Library opened);
/// What weft_library_write and weft_library_make take as files.
Result<std::vector<library::File>> filesOf(const weft_file *files, size_t count);

/// Hands a failure out: its text to *error where that is wanted, its code as the result.
weft_status report(const Error &failed, weft_error **error) noexcept;

/// Runs `body`, which returns a Status; nothing is ever thrown across the C interface.
template <typename Body> weft_status guarded(weft_error **error, Body &&body) noexcept {
  if (error)
    *error = nullptr;
  try {
    Status status = body();
    return status ? WEFT_OK : report(status.error(), error);
  } catch (const std::bad_alloc &) {
    return report(Error{StatusCode::OutOfMemory, {}}, error);
  } catch (const std::exception &thrown) {
    try {
      return report(Error{StatusCode::Internal, thrown.what()}, error);
    } catch (...) {
      return WEFT_INTERNAL;
    }
  } catch (...) {
    return WEFT_INTERNAL;
  }
}

/// Refuses NULL where a handle or a place for a result is needed.
template <typename... Pointers> Status needed(const Pointers *...pointers) {
  if ((... && pointers))
    return {};
  return failure(StatusCode::InvalidArgument, "expected a handle or the address of a result, but got NULL");
}

/// Refuses NULL in the place of an array with elements.
inline Status neededArray(const void *array, size_t count) { return count ? needed(array) : Status(); }

/// Stores a result, or passes its error on.
template <typename T, typename U> Status store(Result<T> result, U *place) {
  if (!result)
    return std::unexpected(std::move(result.error()));
  *place = std::move(*result);
  return {};
}

inline std::span<const launch::Value> valuesOf(const weft_value *values, size_t count) {
  static_assert(sizeof(launch::Value) == sizeof(weft_value) && alignof(launch::Value) == alignof(weft_value));
  return {reinterpret_cast<const launch::Value *>(values), count};
}

static_assert(sizeof(launch::Tensor) == sizeof(weft_tensor) && alignof(launch::Tensor) == alignof(weft_tensor));
static_assert(offsetof(launch::Tensor, shape) == offsetof(weft_tensor, shape));
static_assert(offsetof(launch::Tensor, strides) == offsetof(weft_tensor, strides));
static_assert(library::maxRank == WEFT_MAX_RANK && static_cast<int>(library::Element::FP8E5) == WEFT_FP8E5);
inline std::span<const launch::Tensor> tensorsOf(const weft_tensor *tensors, size_t count) {
  return {reinterpret_cast<const launch::Tensor *>(tensors), count};
}

inline driver::Extent3 extentOf(const weft_extent &extent) { return {extent.x, extent.y, extent.z}; }

} // namespace weft::capi
