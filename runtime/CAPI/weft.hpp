// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Weft's runtime in C++17: move-only handles over weft.h, header only. What fails throws weft::Exception, except
// destructors, which let go silently. Threads, ownership and strings are as weft.h says.
#pragma once

#include <weft.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// A failure: the status, and a text that says what was expected, what came and what to do.
class Exception : public std::runtime_error {
public:
  Exception(weft_status status, const std::string &message) : std::runtime_error(message), code(status) {}
  /// What kind of failure it was.
  weft_status status() const noexcept { return code; }

private:
  weft_status code;
};

namespace detail {

/// A text as C takes it, which ends at a null character: one that holds another is refused, not cut.
inline const char *text(const std::string &whole) {
  std::size_t at = whole.find('\0');
  if (at != std::string::npos)
    throw Exception(WEFT_INVALID_ARGUMENT, "expected a text without null characters, but got one at byte " +
                                               std::to_string(at) + " of " + std::to_string(whole.size()));
  return whole.c_str();
}

/// Calls a function of weft.h with its last parameter supplied, and throws what it reports.
template <typename Function, typename... Arguments> void call(Function function, Arguments... arguments) {
  weft_error *error = nullptr;
  weft_status status = function(arguments..., &error);
  if (status == WEFT_OK)
    return;
  std::unique_ptr<weft_error, void (*)(weft_error *)> owned(error, weft_error_free);
  std::string message = weft_error_message(error);
  throw Exception(status, message.empty() ? weft_status_name(status) : message);
}

} // namespace detail

/// One argument of a launch: built from any integer, any floating-point number, or an address (weft::Address{a},
/// weft::Buffer).
struct Address {
  weft_address value = 0;
};
class Buffer;
class Value {
public:
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Value(T integer)
      : value(std::is_unsigned_v<T> ? weft_value_unsigned(static_cast<uint64_t>(integer))
                                    : weft_value_integer(static_cast<int64_t>(integer))) {}
  Value(double real) : value(weft_value_real(real)) {}
  Value(float real) : value(weft_value_real(real)) {}
  Value(Address address) : value(weft_value_address(address.value)) {}
  inline Value(const Buffer &buffer);
  /// As the C interface takes it.
  const weft_value &get() const { return value; }

private:
  weft_value value;
};
static_assert(sizeof(Value) == sizeof(weft_value), "an array of Value is an array of weft_value");

/// Blocks of a grid, threads of a block.
struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  operator weft_extent() const { return {x, y, z}; }
};

/// An opened device.
class Device {
public:
  /// "cuda:0", "simulator", "simulator:sm_80"; "" for the default (weft_default_device).
  explicit Device(const std::string &name = "") {
    weft_device *opened = nullptr;
    detail::call(weft_device_open, detail::text(name), &opened);
    handle.reset(opened);
  }
  std::string name() const { return weft_device_name(get()); }
  std::string model() const { return weft_device_model(get()); }
  weft_device_properties properties() const {
    weft_device_properties facts{};
    detail::call(weft_device_get_properties, get(), &facts);
    return facts;
  }
  /// Waits until `stream` is empty; throws what went wrong on it.
  void synchronize(weft_stream stream = nullptr) const { detail::call(weft_stream_synchronize, get(), stream); }
  weft_device *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(weft_device *device) const { weft_device_close(device); }
  };
  std::unique_ptr<weft_device, Close> handle;
};

/// Device memory. Its device must outlive it.
class Buffer {
public:
  Buffer(const Device &device, size_t bytes) : on(device.get()), count(bytes) {
    detail::call(weft_buffer_alloc, on, bytes, &at);
  }
  /// Device memory with a copy of `host`.
  template <typename T>
  Buffer(const Device &device, const std::vector<T> &host) : Buffer(device, host.size() * sizeof(T)) {
    write(host.data(), count);
  }
  Buffer(Buffer &&other) noexcept
      : on(other.on), at(std::exchange(other.at, 0)), count(std::exchange(other.count, 0)) {}
  Buffer &operator=(Buffer &&other) noexcept {
    std::swap(on, other.on);
    std::swap(at, other.at);
    std::swap(count, other.count);
    return *this;
  }
  ~Buffer() {
    if (at)
      weft_buffer_free(on, at, nullptr);
  }
  weft_address address() const { return at; }
  size_t bytes() const { return count; }
  /// Copies from the host; `source` may be re-used on return.
  void write(const void *source, size_t length, weft_stream stream = nullptr) {
    detail::call(weft_buffer_write, on, at, source, length, stream);
  }
  /// Copies to the host after what `stream` holds.
  void read(void *destination, size_t length, weft_stream stream = nullptr) const {
    detail::call(weft_buffer_read, on, destination, at, length, stream);
  }
  /// The whole buffer as a vector; a remainder shorter than a T is left out.
  template <typename T> std::vector<T> to(weft_stream stream = nullptr) const {
    std::vector<T> host(count / sizeof(T));
    read(host.data(), host.size() * sizeof(T), stream);
    return host;
  }
  void fill(uint8_t value, weft_stream stream = nullptr) {
    detail::call(weft_buffer_fill, on, at, value, count, stream);
  }

private:
  weft_device *on;
  weft_address at = 0;
  size_t count = 0;
};

inline Value::Value(const Buffer &buffer) : value(weft_value_address(buffer.address())) {}

/// A stream made here. Where the caller has one of its own (CUstream, cudaStream_t), that is passed as it is.
class Stream {
public:
  explicit Stream(const Device &device) : on(device.get()) { detail::call(weft_stream_create, on, &handle); }
  Stream(Stream &&other) noexcept : on(other.on), handle(std::exchange(other.handle, nullptr)) {}
  Stream &operator=(Stream &&other) noexcept {
    std::swap(on, other.on);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Stream() {
    if (handle)
      weft_stream_destroy(on, handle, nullptr);
  }
  operator weft_stream() const { return handle; }

private:
  weft_device *on;
  weft_stream handle = nullptr;
};

/// An opened PTX library.
class Library {
public:
  /// Throws WEFT_NOT_FOUND where there is none, WEFT_CORRUPT where it is refused.
  explicit Library(const std::string &path) {
    weft_library *opened = nullptr;
    detail::call(weft_library_open, detail::text(path), &opened);
    handle.reset(opened);
  }
  /// A library that was never on disk (weft_library_make); the files as pairs of name and contents.
  Library(const std::string &name, const std::string &kernelsJson,
          const std::vector<std::pair<std::string, std::string>> &files) {
    std::vector<weft_file> parts;
    for (const auto &[file, bytes] : files)
      parts.push_back({detail::text(file), bytes.data(), bytes.size()});
    weft_library *made = nullptr;
    detail::call(weft_library_make, detail::text(name), detail::text(kernelsJson),
                 static_cast<const weft_file *>(parts.data()), parts.size(), &made);
    handle.reset(made);
  }
  /// The text of manifest.json.
  std::string manifest() const { return weft_library_manifest(get()); }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < weft_library_kernel_count(get()); ++i)
      names.emplace_back(weft_library_kernel_name(get(), i));
    return names;
  }
  std::vector<std::string> programs() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < weft_library_program_count(get()); ++i)
      names.emplace_back(weft_library_program_name(get(), i));
    return names;
  }
  size_t find(const std::string &kernel) const {
    size_t index = 0;
    detail::call(weft_library_find_kernel, get(), detail::text(kernel), &index);
    return index;
  }
  /// The arguments of a kernel: name and type.
  std::vector<std::pair<std::string, std::string>> arguments(const std::string &kernel) const {
    std::vector<std::pair<std::string, std::string>> result;
    size_t index = find(kernel);
    for (size_t i = 0; i < weft_library_argument_count(get(), index); ++i)
      result.emplace_back(weft_library_argument_name(get(), index, i), weft_library_argument_type(get(), index, i));
    return result;
  }
  /// The variants of a kernel, in order of preference. Their strings live as long as the library.
  std::vector<weft_variant_info> variants(const std::string &kernel) const {
    size_t index = find(kernel);
    std::vector<weft_variant_info> result(weft_library_variant_count(get(), index));
    for (size_t i = 0; i < result.size(); ++i)
      detail::call(weft_library_get_variant, get(), index, i, &result[i]);
    return result;
  }
  /// Launches a kernel on a stream; without `grid` the library's own expression gives it.
  void launch(const Device &device, const std::string &kernel, std::optional<Extent> grid,
              std::initializer_list<Value> values, weft_stream stream = nullptr) const {
    weft_extent extent = grid.value_or(Extent{});
    detail::call(weft_library_launch, get(), device.get(), detail::text(kernel), grid ? &extent : nullptr,
                 reinterpret_cast<const weft_value *>(values.begin()), values.size(), stream);
  }
  weft_library *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(weft_library *library) const { weft_library_close(library); }
  };
  std::unique_ptr<weft_library, Close> handle;
};

/// A contiguous tensor in a buffer.
inline weft_tensor tensor(const Buffer &buffer, weft_element element, std::initializer_list<int64_t> shape) {
  return weft_tensor_contiguous(buffer.address(), element, static_cast<int32_t>(shape.size()), shape.begin());
}

/// A program of a library on a device, ready to run.
class Program {
public:
  /// Throws WEFT_NOT_FOUND, naming the programs that there are, and WEFT_WRONG_TARGET.
  Program(const Library &library, const Device &device, const std::string &name) {
    weft_program *opened = nullptr;
    detail::call(weft_program_open, library.get(), device.get(), detail::text(name), &opened);
    handle.reset(opened);
  }
  /// Loads the kernels of all plans, so that no run loads any.
  void load() const { detail::call(weft_program_load, static_cast<const weft_program *>(get())); }
  /// The target whose plan runs.
  std::string target() const { return weft_program_target(get()); }
  /// What it takes, and what it gives. The strings live as long as the program.
  std::vector<weft_tensor_info> inputs() const {
    return facts(weft_program_get_input, weft_program_input_count(get()));
  }
  std::vector<weft_tensor_info> outputs() const {
    return facts(weft_program_get_output, weft_program_output_count(get()));
  }
  /// Which plan a run on inputs of these shapes takes, by its number among the program's variants in the manifest.
  size_t choose(const std::vector<weft_tensor> &inputs) const {
    size_t variant = 0;
    detail::call(weft_program_choose, static_cast<const weft_program *>(get()), inputs.data(), inputs.size(), &variant);
    return variant;
  }
  /// The outputs, contiguous and at address 0, and the bytes of workspace of a run on inputs of these shapes.
  std::pair<std::vector<weft_tensor>, uint64_t> require(const std::vector<weft_tensor> &inputs) const {
    std::vector<weft_tensor> outputs(weft_program_output_count(get()));
    uint64_t bytes = 0;
    detail::call(weft_program_require, static_cast<const weft_program *>(get()), inputs.data(), inputs.size(),
                 outputs.data(), outputs.size(), &bytes);
    return {std::move(outputs), bytes};
  }
  /// Queues the program on a stream. `workspace` must hold the bytes that it requires; none where that is 0.
  void run(const std::vector<weft_tensor> &inputs, const std::vector<weft_tensor> &outputs,
           const Buffer *workspace = nullptr, weft_stream stream = nullptr) const {
    detail::call(weft_program_run, static_cast<const weft_program *>(get()), inputs.data(), inputs.size(),
                 outputs.data(), outputs.size(), workspace ? workspace->address() : weft_address(0),
                 uint64_t(workspace ? workspace->bytes() : 0), stream);
  }
  weft_program *get() const { return handle.get(); }

private:
  using GetInfo = weft_status (*)(const weft_program *, size_t, weft_tensor_info *, weft_error **);
  std::vector<weft_tensor_info> facts(GetInfo getInfo, size_t count) const {
    std::vector<weft_tensor_info> result(count);
    for (size_t i = 0; i < count; ++i)
      detail::call(getInfo, static_cast<const weft_program *>(get()), i, &result[i]);
    return result;
  }
  struct Close {
    void operator()(weft_program *program) const { weft_program_close(program); }
  };
  std::unique_ptr<weft_program, Close> handle;
};

/// An entry of PTX that was loaded without a library.
class Kernel {
public:
  /// Loads `ptx` on a device and finds `entry`; `types` are its parameters' as signatures spell them.
  Kernel(const Device &device, const std::string &ptx, const std::string &entry, uint32_t sharedBytes,
         const std::vector<std::string> &types) {
    weft_module *loaded = nullptr;
    detail::call(weft_module_load, device.get(), detail::text(ptx), &loaded);
    std::unique_ptr<weft_module, void (*)(weft_module *)> module(loaded, weft_module_close);
    std::vector<const char *> names;
    for (const std::string &type : types)
      names.push_back(detail::text(type));
    weft_kernel *found = nullptr;
    detail::call(weft_module_kernel, loaded, detail::text(entry), sharedBytes, names.data(), names.size(), &found);
    handle.reset(found);
  }
  weft_kernel_attributes attributes() const {
    weft_kernel_attributes facts{};
    detail::call(weft_kernel_get_attributes, get(), &facts);
    return facts;
  }
  /// Launches the kernel on a stream.
  void launch(Extent grid, Extent block, std::initializer_list<Value> values, weft_stream stream = nullptr) const {
    detail::call(weft_kernel_launch, get(), weft_extent(grid), weft_extent(block),
                 static_cast<const weft_extent *>(nullptr), reinterpret_cast<const weft_value *>(values.begin()),
                 values.size(), stream);
  }
  weft_kernel *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(weft_kernel *kernel) const { weft_kernel_close(kernel); }
  };
  std::unique_ptr<weft_kernel, Close> handle;
};

} // namespace weft
