// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Python arguments of a launch as values of weft.h: numbers, addresses, NumPy arrays, torch tensors, and anything else
// that has the buffer protocol.
#pragma once

#include "runtime/CAPI/weft.hpp"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weft::python {

/// Bytes of host memory that arrays of one launch lie in. Arrays that overlap share one range.
struct HostRange {
  uintptr_t begin = 0, end = 0;
  bool writable = false;
  weft_address address = 0; ///< on the device, while the launch runs
};

/// A torch tensor, or an array with the buffer protocol, as a program takes it.
struct Array {
  weft_tensor tensor{};            ///< its address comes with Arguments
  uintptr_t pointer = 0;           ///< its first element, in host memory or on a CUDA device
  int cudaOrdinal = -1;            ///< -1 in host memory
  std::optional<uintptr_t> stream; ///< on a CUDA device, the stream that the array names; torch's current one else
  bool writable = true;            ///
  std::shared_ptr<Py_buffer> view; ///< held while an array with the buffer protocol is in use
};

/// The stream on which a CUDA tensor says that it is ready, as those of other libraries than torch do.
std::optional<uintptr_t> streamNamedBy(pybind11::handle tensor);

/// Bytes of an element.
intptr_t elementBytes(int32_t element);

/// Fills `view` as PyObject_GetBuffer does. Arrays of NumPy whose elements are of another library's type (ml_dtypes)
/// lend no buffer: of those that kernels know it is one of their bits, and the element is given. Throws Python's error.
std::optional<int32_t> getBuffer(pybind11::handle object, Py_buffer &view, int flags);

/// What a parameter takes: an array or an address; a number; an integer of 64 bits that has no negative ones.
enum class Takes : uint8_t { Pointer, Number, Unsigned };

/// What a parameter takes whose type signatures spell so.
Takes takenBy(std::string_view type);

/// The arguments of one launch, host arrays made addressable on the device for as long as this lives.
///
/// On the simulator host memory is used in place; what the caller may not write is lent as a copy, and a kernel that
/// writes to it is at fault. On CUDA every host array is copied in, and back by `finish`.
class Arguments {
public:
  /// Converts `given`; `takes[i]` says what parameter i takes. Throws weft::Exception, or Python's own TypeError, for
  /// what does not fit.
  Arguments(weft_device *device, bool simulated, int cudaOrdinal, const pybind11::tuple &given,
            const std::vector<Takes> &takes);
  /// As pointers all, in the order of `arrays`.
  Arguments(weft_device *device, bool simulated, int cudaOrdinal, const std::vector<Array> &arrays);
  Arguments(const Arguments &) = delete;
  ~Arguments();

  const std::vector<weft_value> &values() const { return converted; }
  /// The stream that CUDA tensors among the arguments are used on: the one that the first of them names, torch's
  /// current one where it names none; null where there are no such tensors.
  weft_stream torchStream() const { return stream; }
  /// After the launch: waits for it where host arrays were copied, and copies them back.
  void finish(weft_stream launchedOn);

private:
  struct Use {
    size_t value;      ///< index into converted
    uintptr_t pointer; ///< where the array's first element is
  };
  void addPointer(pybind11::handle object, size_t index);
  void addTensor(pybind11::handle tensor, size_t index);
  void useOnCuda(uintptr_t pointer, int where, std::optional<uintptr_t> named, size_t index);
  void addArray(const Array &array, size_t index);
  void addBuffer(pybind11::handle object, size_t index);
  void addHost(uintptr_t pointer, uintptr_t begin, uintptr_t end, bool writable, size_t index);
  void mergeRanges();
  void lend();
  void release() noexcept;

  weft_device *device;
  bool simulated;
  int ordinal;
  std::vector<weft_value> converted;
  std::vector<Use> uses;
  std::vector<HostRange> ranges;
  std::vector<Py_buffer> buffers;
  weft_stream stream = nullptr;
  bool knowsStream = false;
};

} // namespace weft::python
