// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The one interface through which kernels reach a device. Two things implement it: the CUDA driver, loaded by dlopen
// (Cuda.h), and the simulator (Simulated.h). Nothing above this line of the tree knows which of them it talks to.
//
//   auto device = *openDevice("simulator:sm_80");
//   Address x = *device->allocate(512);
//   auto kernel = *(*device->loadModule(ptx))->kernel("double", /*sharedBytes=*/0);   // of 128 f32 at x
//   kernel->launch({.grid = {1, 1, 1}, .block = {128, 1, 1}}, bytesOf(x), /*stream=*/nullptr);
//   device->copyOut(values, x, nullptr);                                              // waits for the stream
#pragma once

#include "runtime/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::driver {

/// An address in a device's global memory. 0 is never allocated.
using Address = uint64_t;
/// A stream. On CUDA a `CUstream`, the caller's own or one made here; null is the device's default stream. The
/// simulator runs every operation to its end before returning, so that any stream is in order there.
using StreamHandle = void *;
/// A point in a stream. On CUDA a `CUevent`.
using EventHandle = void *;

/// Three counts: of blocks in a grid, of threads in a block, of blocks in a cluster.
struct Extent3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Extent3 &) const = default;
};

/// What a device is and how much of everything it has.
struct DeviceProperties {
  std::string name;                ///< for example "NVIDIA H200", "Weft simulator"
  int major = 0, minor = 0;        ///< compute capability
  uint64_t memoryBytes = 0;        ///< global memory
  uint32_t multiprocessors = 0;    ///< on the simulator: worker threads
  uint32_t maxThreadsPerBlock = 0; ///
  uint32_t maxSharedBytes = 0;     ///< dynamic shared memory that one block may ask for
  bool simulated = false;          ///< results come from the simulator: times mean nothing
};

/// How a kernel is launched.
struct LaunchShape {
  Extent3 grid;             ///< blocks; no count may be 0
  Extent3 block;            ///< threads
  Extent3 cluster;          ///< blocks of a cluster; 1,1,1 for none
  uint32_t sharedBytes = 0; ///< dynamic shared memory per block
};

/// What the driver reports of a loaded kernel.
struct KernelAttributes {
  uint32_t registers = 0;         ///< per thread; 0 where unknown (the simulator has no register file)
  uint32_t localBytes = 0;        ///< local memory per thread, spills included
  uint32_t staticSharedBytes = 0; ///< shared memory that the PTX itself declares
};

/// One entry of a loaded module. Keeps its module and its device alive. Safe to launch from several threads.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Registers, local and shared memory of the kernel on its device.
  virtual KernelAttributes attributes() const = 0;
  /// Parameters of a launch with the tensor maps behind them that the PTX says how to make. InvalidArgument where there
  /// is no map of a tensor like that, as one with negative strides.
  virtual Result<std::vector<std::byte>> complete(std::vector<std::byte> parameters) = 0;
  /// Queues one launch. `parameters` holds every parameter at its natural alignment in declaration order, as a C
  /// struct would; tensor maps that they lack are added here. CUDA reports faults of the kernel itself
  /// at a later synchronisation; the simulator here, with code Finding and the text of the first findings.
  virtual Status launch(const LaunchShape &shape, std::span<const std::byte> parameters, StreamHandle stream) = 0;
};

/// PTX loaded on a device.
class Module {
public:
  virtual ~Module() = default;
  /// Finds an entry and raises its limit of dynamic shared memory to `sharedBytes`. NotFound names the entries that
  /// exist where the driver knows them.
  virtual Result<std::shared_ptr<Kernel>> kernel(const std::string &entry, uint32_t sharedBytes) = 0;
};

/// A device. Every method may be called from several threads. Objects made from a device keep it alive.
class Device : public std::enable_shared_from_this<Device> {
public:
  virtual ~Device() = default;

  virtual const DeviceProperties &properties() const = 0;
  /// The name that opens this device again: "cuda:1", "simulator".
  virtual std::string name() const = 0;

  /// Allocates at least 256-byte aligned global memory. 0 bytes give an address that may be freed and not used.
  virtual Result<Address> allocate(size_t bytes) = 0;
  /// Frees what `allocate` gave.
  virtual Status free(Address address) = 0;
  /// Copies host memory to the device, in the order of `stream`; `source` may be re-used on return.
  virtual Status copyIn(Address destination, std::span<const std::byte> source, StreamHandle stream) = 0;
  /// Copies device memory to the host, after what `stream` holds; the data is there on return.
  virtual Status copyOut(std::span<std::byte> destination, Address source, StreamHandle stream) = 0;
  /// Copies within the device, in the order of `stream`.
  virtual Status copyWithin(Address destination, Address source, size_t bytes, StreamHandle stream) = 0;
  /// Sets every byte to `value`, in the order of `stream`.
  virtual Status fill(Address destination, uint8_t value, size_t bytes, StreamHandle stream) = 0;

  /// Makes host memory addressable by kernels in place, without a copy, until `unmapHost`. Unsupported on CUDA.
  /// Overlapping ranges must be mapped as one.
  virtual Result<Address> mapHost(void *data, size_t bytes) = 0;
  virtual Status unmapHost(Address address) = 0;

  virtual Result<StreamHandle> createStream() = 0;
  virtual Status destroyStream(StreamHandle stream) = 0;
  /// Waits until `stream` is empty. A fault of an earlier kernel is reported here on CUDA.
  virtual Status synchronize(StreamHandle stream) = 0;

  virtual Result<EventHandle> createEvent() = 0;
  virtual Status destroyEvent(EventHandle event) = 0;
  /// Marks this point of `stream`.
  virtual Status recordEvent(EventHandle event, StreamHandle stream) = 0;
  /// Waits for `end`; the time between two recorded events, in milliseconds.
  virtual Result<float> elapsedMilliseconds(EventHandle begin, EventHandle end) = 0;

  /// Loads PTX text. Corrupt, with the driver's own log, where it does not assemble.
  virtual Result<std::shared_ptr<Module>> loadModule(const std::string &ptx) = 0;
  /// Loads machine code, a whole cubin, that was assembled of `ptx`. WrongTarget or Corrupt where the driver knows no
  /// such code or such GPU: then the PTX may still load. Unsupported on the simulator, which runs PTX.
  virtual Result<std::shared_ptr<Module>> loadBinary(std::string_view cubin, std::string_view ptx) = 0;
};

/// Opens a device by name: "cuda" or "cuda:N"; "simulator", or "simulator:sm_80" to have it answer as that target; an
/// empty name means `defaultDeviceName()`. Each call opens anew and holds what it opened until the last user is gone.
Result<std::shared_ptr<Device>> openDevice(const std::string &name);

/// WEFT_DEVICE where it is set and not empty; else "cuda:0" where a driver with a device answers, else "simulator".
std::string defaultDeviceName();

/// Names of all devices that can be opened here: CUDA's first, then the simulator.
std::vector<std::string> deviceNames();

} // namespace weft::driver
