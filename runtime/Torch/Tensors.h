// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensors by torch's stable C interface, and programs that run on them.
#pragma once

#include <weft.hpp>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <memory>
#include <string>
#include <vector>

namespace weft::torch {

/// Throws where a function of torch's failed; torch's own message went to the log.
void check(AOTITorchError error);

/// A tensor of torch's that this owns.
class Tensor {
public:
  explicit Tensor(AtenTensorHandle handle) : handle(handle, aoti_torch_delete_tensor_object) {}
  AtenTensorHandle get() const { return handle.get(); }
  AtenTensorHandle release() { return handle.release(); }

  /// As weft.h describes it, at the address of its memory.
  weft_tensor described() const;
  /// The torch device: its type, and its number.
  std::pair<int32_t, int32_t> device() const;
  bool isCuda() const { return device().first == aoti_torch_device_type_cuda(); }

  /// Fresh memory, contiguous, on the device of another.
  static Tensor empty(const weft_tensor &shape, const Tensor &like);
  /// This, or a copy in memory that every kernel reads: the last axis contiguous, rows at multiples of 16 bytes where
  /// kernels count on it.
  Tensor readable(bool aligned) &&;

private:
  std::unique_ptr<AtenTensorOpaque, AOTITorchError (*)(AtenTensorHandle)> handle;
};

/// A tensor as an argument or a result of a boxed kernel.
AtenTensorHandle handleOf(StableIValue value);
StableIValue valueOf(AtenTensorHandle handle);

/// The name of the device that a call on these tensors runs on: that of the first CUDA tensor, else the simulator.
std::string deviceOf(const std::vector<Tensor> &tensors);

/// A program ready on a device.
class Ready {
public:
  Ready(const Library &library, const std::string &device, const std::string &program)
      : device(device), program(library, this->device, program), inputs(this->program.inputs()) {}
  /// Runs it, on CUDA queued on torch's current stream; gives the outputs.
  std::vector<Tensor> run(std::vector<Tensor> tensors);

private:
  Device device;
  Program program;
  std::vector<weft_tensor_info> inputs;
};

} // namespace weft::torch
