// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See TorchTensors.h. The structures are those of DLPack 1, whose layout is fixed.
#include "python/bindings/TorchTensors.h"

#include <algorithm>

namespace py = pybind11;

namespace weft::python {
namespace {

enum DeviceType : int32_t { cpu = 1, cuda = 2 };
enum TypeCode : uint8_t { integer = 0, real = 2, bfloat = 4, boolean = 6, e4m3fn = 10, e5m2 = 12 };

struct View {
  void *data;
  int32_t deviceType, device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset; ///< bytes
};

/// What a library of arrays offers to others, as a capsule of its class.
struct Exchange {
  struct Version {
    uint32_t major, minor;
  } version;
  Exchange *older;
  void *allocate, *give, *take;
  int (*view)(void *object, View *view);
  void *stream;
};

/// torch's classes and its table, once torch is loaded. They live as long as the interpreter.
struct Torch {
  PyTypeObject *tensor = nullptr, *parameter = nullptr;
  const Exchange *exchange = nullptr;

  void find() {
    py::dict modules = py::module_::import("sys").attr("modules");
    if (!modules.contains("torch.nn"))
      return;
    py::object torch = modules["torch"];
    parameter = reinterpret_cast<PyTypeObject *>(py::object(torch.attr("nn").attr("Parameter")).release().ptr());
    tensor = reinterpret_cast<PyTypeObject *>(py::object(torch.attr("Tensor")).release().ptr());
    constexpr const char *name = "__dlpack_c_exchange_api__", *kind = "dlpack_exchange_api";
    PyObject *capsule = PyObject_GetAttrString(reinterpret_cast<PyObject *>(tensor), name);
    if (capsule && PyCapsule_IsValid(capsule, kind)) {
      auto *found = static_cast<const Exchange *>(PyCapsule_GetPointer(capsule, kind));
      exchange = found->version.major == 1 && found->view ? found : nullptr;
    }
    PyErr_Clear();
  }
};

int32_t elementOf(const View &view) {
  struct Known {
    uint8_t code, bits;
    int32_t element;
  };
  static constexpr Known all[] = {{real, 32, WEFT_FP32},   {real, 16, WEFT_FP16},     {bfloat, 16, WEFT_BF16},
                                  {integer, 32, WEFT_I32}, {integer, 64, WEFT_I64},   {integer, 8, WEFT_I8},
                                  {boolean, 8, WEFT_I1},   {e4m3fn, 8, WEFT_FP8E4NV}, {e5m2, 8, WEFT_FP8E5}};
  const auto *found =
      std::ranges::find_if(all, [&](const Known &each) { return each.code == view.code && each.bits == view.bits; });
  return found == std::end(all) || view.lanes != 1 ? -1 : found->element;
}

} // namespace

std::optional<Array> viewedTensor(py::handle object) {
  static auto *torch = new Torch; // never destroyed: the interpreter may be gone by then
  if (!torch->tensor)
    torch->find();
  PyTypeObject *kind = Py_TYPE(object.ptr());
  if (!torch->exchange || (kind != torch->tensor && kind != torch->parameter))
    return std::nullopt;
  View view{};
  if (torch->exchange->view(object.ptr(), &view) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  Array array;
  array.tensor.element = elementOf(view);
  if (array.tensor.element < 0 || view.rank > WEFT_MAX_RANK || (view.deviceType != cpu && view.deviceType != cuda))
    return std::nullopt;
  array.tensor.rank = view.rank;
  std::copy_n(view.shape, view.rank, array.tensor.shape);
  std::copy_n(view.strides, view.rank, array.tensor.strides);
  array.pointer = reinterpret_cast<uintptr_t>(view.data) + view.offset;
  array.cudaOrdinal = view.deviceType == cuda ? view.device : -1;
  return array;
}

} // namespace weft::python
