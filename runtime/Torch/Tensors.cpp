// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Tensors.h.
#include "runtime/Torch/Tensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace weft::torch {

void check(AOTITorchError error) {
  if (error != AOTI_TORCH_SUCCESS)
    throw std::runtime_error("expected torch to do what Weft's operators ask, but it failed: its log says why");
}

namespace {

/// A type of elements as torch and as weft.h have it.
struct Element {
  int32_t theirs;
  weft_element ours;
  int64_t bytes;
};

const std::vector<Element> &elements() {
  static const std::vector<Element> all{
      {aoti_torch_dtype_bool(), WEFT_I1, 1},          {aoti_torch_dtype_int8(), WEFT_I8, 1},
      {aoti_torch_dtype_int32(), WEFT_I32, 4},        {aoti_torch_dtype_int64(), WEFT_I64, 8},
      {aoti_torch_dtype_float16(), WEFT_FP16, 2},     {aoti_torch_dtype_bfloat16(), WEFT_BF16, 2},
      {aoti_torch_dtype_float32(), WEFT_FP32, 4},     {aoti_torch_dtype_float8_e4m3fn(), WEFT_FP8E4NV, 1},
      {aoti_torch_dtype_float8_e5m2(), WEFT_FP8E5, 1}};
  return all;
}

const Element &elementOf(const weft_tensor &tensor) {
  return *std::find_if(elements().begin(), elements().end(),
                       [&](const Element &each) { return each.ours == tensor.element; });
}

/// The bytes from a tensor's first element to its last.
int64_t span(const weft_tensor &tensor) {
  int64_t last = 0;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0)
      return 0;
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return (last + 1) * elementOf(tensor).bytes;
}

/// Host memory of tensors that the simulator addresses in place while this lives; what overlaps is mapped as one.
class Mapped {
public:
  Mapped(const Device &device, const std::vector<weft_tensor *> &tensors) : device(device.get()) {
    std::vector<weft_tensor *> sorted;
    for (weft_tensor *tensor : tensors)
      if (span(*tensor) > 0)
        sorted.push_back(tensor);
    std::sort(sorted.begin(), sorted.end(),
              [](const weft_tensor *a, const weft_tensor *b) { return a->address < b->address; });
    for (size_t first = 0; first < sorted.size();) {
      uint64_t begin = sorted[first]->address, end = begin;
      size_t past = first;
      for (; past < sorted.size() && (past == first || sorted[past]->address < end); ++past)
        end = std::max<uint64_t>(end, sorted[past]->address + span(*sorted[past]));
      weft_address address = 0;
      detail::call(weft_buffer_map, this->device, reinterpret_cast<void *>(begin), size_t(end - begin), &address);
      addresses.push_back(address);
      for (; first < past; ++first)
        sorted[first]->address = address + (sorted[first]->address - begin);
    }
  }
  ~Mapped() {
    for (weft_address address : addresses)
      weft_buffer_unmap(device, address, nullptr);
  }
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;

private:
  weft_device *device;
  std::vector<weft_address> addresses;
};

/// torch's current stream. A torch without CUDA has no function that says it.
weft_stream currentStream(int32_t device) {
  using Current = AOTITorchError (*)(int32_t, void **);
  static const auto current = reinterpret_cast<Current>(dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
  void *stream = nullptr;
  if (current)
    check(current(device, &stream));
  return stream;
}

} // namespace

weft_tensor Tensor::described() const {
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t type = 0;
  void *data = nullptr;
  check(aoti_torch_get_dim(get(), &rank));
  check(aoti_torch_get_sizes(get(), &sizes));
  check(aoti_torch_get_strides(get(), &strides));
  check(aoti_torch_get_dtype(get(), &type));
  check(aoti_torch_get_data_ptr(get(), &data));
  auto element = std::find_if(elements().begin(), elements().end(), [&](const Element &e) { return e.theirs == type; });
  if (element == elements().end() || rank > WEFT_MAX_RANK)
    throw std::runtime_error("expected a tensor of bool, int8, int32, int64, float16, bfloat16, float32, float8_e4m3fn "
                             "or float8_e5m2 and of "
                             "at most 8 axes, but got another");
  weft_tensor tensor = weft_tensor_contiguous(reinterpret_cast<uint64_t>(data), element->ours, int32_t(rank), sizes);
  std::copy(strides, strides + rank, tensor.strides);
  return tensor;
}

std::pair<int32_t, int32_t> Tensor::device() const {
  std::pair<int32_t, int32_t> found;
  check(aoti_torch_get_device_type(get(), &found.first));
  check(aoti_torch_get_device_index(get(), &found.second));
  return found;
}

Tensor Tensor::empty(const weft_tensor &shape, const Tensor &like) {
  auto [type, index] = like.device();
  weft_tensor contiguous = weft_tensor_contiguous(0, weft_element(shape.element), shape.rank, shape.shape);
  AtenTensorHandle made = nullptr;
  check(aoti_torch_empty_strided(shape.rank, shape.shape, contiguous.strides, elementOf(shape).theirs, type, index,
                                 &made));
  return Tensor(made);
}

Tensor Tensor::readable(bool aligned) && {
  weft_tensor tensor = described();
  int64_t bytes = elementOf(tensor).bytes, last = tensor.rank - 1;
  bool fits = tensor.rank == 0 || tensor.strides[last] == 1 || tensor.shape[last] <= 1;
  if (aligned)
    fits &= tensor.address % 16 == 0;
  for (int32_t i = 0; aligned && i < last; ++i)
    fits &= tensor.shape[i] <= 1 || tensor.strides[i] * bytes % 16 == 0;
  if (fits)
    return std::move(*this);
  Tensor copy = empty(tensor, *this);
  check(aoti_torch_copy_(copy.get(), get(), 0));
  return copy;
}

// A tensor lies in the low bytes of a value of 64 bits, as torch/csrc/stable/stableivalue_conversions.h has it.
AtenTensorHandle handleOf(StableIValue value) {
  AtenTensorHandle handle = nullptr;
  std::memcpy(&handle, &value, sizeof handle);
  return handle;
}

StableIValue valueOf(AtenTensorHandle handle) {
  StableIValue value = 0;
  std::memcpy(&value, &handle, sizeof handle);
  return value;
}

std::string deviceOf(const std::vector<Tensor> &tensors) {
  for (const Tensor &tensor : tensors)
    if (tensor.isCuda())
      return "cuda:" + std::to_string(tensor.device().second);
  const char *wanted = std::getenv("WEFT_DEVICE");
  return wanted && std::strncmp(wanted, "simulator", 9) == 0 ? wanted : "simulator";
}

std::vector<Tensor> Ready::run(std::vector<Tensor> tensors) {
  if (tensors.size() != inputs.size())
    throw std::runtime_error("expected " + std::to_string(inputs.size()) + " tensors, but got " +
                             std::to_string(tensors.size()));
  std::vector<weft_tensor> given;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = std::move(tensors[i]).readable(inputs[i].aligned);
    given.push_back(tensors[i].described());
  }
  auto [wanted, bytes] = program.require(given);
  std::vector<Tensor> outputs;
  std::vector<weft_tensor> made;
  for (const weft_tensor &each : wanted) {
    outputs.push_back(Tensor::empty(each, tensors.front()));
    made.push_back(outputs.back().described());
  }
  int64_t most = int64_t(bytes) + 256;
  Tensor workspace = Tensor::empty(weft_tensor_contiguous(0, WEFT_I8, 1, &most), tensors.front());
  weft_tensor space = workspace.described();
  std::vector<weft_tensor *> all{&space};
  for (std::vector<weft_tensor> *each : {&given, &made})
    for (weft_tensor &tensor : *each)
      all.push_back(&tensor);
  bool cuda = tensors.front().isCuda();
  std::unique_ptr<Mapped> mapped = cuda ? nullptr : std::make_unique<Mapped>(device, all);
  weft_stream stream = cuda ? currentStream(tensors.front().device().second) : nullptr;
  detail::call(weft_program_run, static_cast<const weft_program *>(program.get()), given.data(), given.size(),
               made.data(), made.size(), weft_address((space.address + 255) / 256 * 256), uint64_t(bytes), stream);
  return outputs;
}

} // namespace weft::torch
