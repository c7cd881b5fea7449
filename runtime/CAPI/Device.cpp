// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/CAPI/Handles.h"
#include "runtime/Driver/Cuda.h"

#include <cstring>

using namespace weft;
using namespace weft::capi;

namespace {

/// Runs `body` on the driver's device behind a handle.
template <typename Body> weft_status onDevice(const weft_device *device, weft_error **error, Body &&body) {
  return guarded(error, [&] { return needed(device).and_then([&] { return body(*device->device); }); });
}

std::span<const std::byte> bytesOf(const void *data, size_t bytes) {
  return {static_cast<const std::byte *>(data), bytes};
}

} // namespace

extern "C" {

size_t weft_default_device(char *buffer, size_t capacity) {
  try {
    std::string name = driver::defaultDeviceName();
    if (buffer && capacity) {
      size_t kept = std::min(name.size(), capacity - 1);
      std::memcpy(buffer, name.data(), kept);
      buffer[kept] = '\0';
    }
    return name.size();
  } catch (...) {
    if (buffer && capacity)
      buffer[0] = '\0';
    return 0;
  }
}

weft_status weft_cuda_device_count(int *count, weft_error **error) {
  if (count)
    *count = 0;
  return guarded(error,
                 [&] { return needed(count).and_then([&] { return store(driver::cudaDeviceCount(), count); }); });
}

weft_status weft_device_open(const char *name, weft_device **device, weft_error **error) {
  if (device)
    *device = nullptr;
  return guarded(error, [&]() -> Status {
    if (Status status = needed(device); !status)
      return status;
    return driver::openDevice(name ? name : "").transform([&](std::shared_ptr<driver::Device> opened) {
      std::string itsName = opened->name();
      *device = new weft_device{std::move(opened), std::move(itsName)};
    });
  });
}

void weft_device_close(weft_device *device) { delete device; }

const char *weft_device_name(const weft_device *device) { return device ? device->name.c_str() : nullptr; }

const char *weft_device_model(const weft_device *device) {
  return device ? device->device->properties().name.c_str() : nullptr;
}

weft_status weft_device_get_properties(const weft_device *device, weft_device_properties *properties,
                                       weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(properties).transform([&] {
      const driver::DeviceProperties &facts = on.properties();
      *properties = {
          facts.major,          facts.minor,      facts.simulated, facts.multiprocessors, facts.maxThreadsPerBlock,
          facts.maxSharedBytes, facts.memoryBytes};
    });
  });
}

weft_status weft_buffer_alloc(weft_device *device, size_t bytes, weft_address *address, weft_error **error) {
  if (address)
    *address = 0;
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(address).and_then([&] { return store(on.allocate(bytes), address); });
  });
}

weft_status weft_buffer_free(weft_device *device, weft_address address, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) { return on.free(address); });
}

weft_status weft_buffer_write(weft_device *device, weft_address destination, const void *source, size_t bytes,
                              weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) -> Status {
    if (bytes == 0)
      return {};
    return needed(source).and_then([&] { return on.copyIn(destination, bytesOf(source, bytes), stream); });
  });
}

weft_status weft_buffer_read(weft_device *device, void *destination, weft_address source, size_t bytes,
                             weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) -> Status {
    if (bytes == 0)
      return {};
    return needed(destination).and_then([&] {
      return on.copyOut({static_cast<std::byte *>(destination), bytes}, source, stream);
    });
  });
}

weft_status weft_buffer_copy(weft_device *device, weft_address destination, weft_address source, size_t bytes,
                             weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) -> Status {
    return bytes ? on.copyWithin(destination, source, bytes, stream) : Status();
  });
}

weft_status weft_buffer_fill(weft_device *device, weft_address destination, uint8_t value, size_t bytes,
                             weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) -> Status {
    return bytes ? on.fill(destination, value, bytes, stream) : Status();
  });
}

weft_status weft_buffer_map(weft_device *device, void *data, size_t bytes, weft_address *address, weft_error **error) {
  if (address)
    *address = 0;
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(data, address).and_then([&] { return store(on.mapHost(data, bytes), address); });
  });
}

weft_status weft_buffer_unmap(weft_device *device, weft_address address, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) { return on.unmapHost(address); });
}

weft_status weft_stream_create(weft_device *device, weft_stream *stream, weft_error **error) {
  if (stream)
    *stream = nullptr;
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(stream).and_then([&] { return store(on.createStream(), stream); });
  });
}

weft_status weft_stream_destroy(weft_device *device, weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(stream).and_then([&] { return on.destroyStream(stream); });
  });
}

weft_status weft_stream_synchronize(weft_device *device, weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) { return on.synchronize(stream); });
}

weft_status weft_event_create(weft_device *device, weft_event *event, weft_error **error) {
  if (event)
    *event = nullptr;
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(event).and_then([&] { return store(on.createEvent(), event); });
  });
}

weft_status weft_event_destroy(weft_device *device, weft_event event, weft_error **error) {
  return onDevice(device, error,
                  [&](driver::Device &on) { return needed(event).and_then([&] { return on.destroyEvent(event); }); });
}

weft_status weft_event_record(weft_device *device, weft_event event, weft_stream stream, weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(event).and_then([&] { return on.recordEvent(event, stream); });
  });
}

weft_status weft_event_elapsed(weft_device *device, weft_event begin, weft_event end, float *milliseconds,
                               weft_error **error) {
  return onDevice(device, error, [&](driver::Device &on) {
    return needed(begin, end, milliseconds).and_then([&] {
      return store(on.elapsedMilliseconds(begin, end), milliseconds);
    });
  });
}

} // extern "C"
