// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The part of XLA's foreign function interface that a handler meets, declared here so that building needs no JAX. Names,
// order and numbers are those of xla/ffi/api/c_api.h, version 0.1 and newer; a test compares them with the header that
// jaxlib brings.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::python::xla {

struct Extension {
  size_t structSize;
  int type;
  Extension *next;
};
constexpr int extensionMetadata = 1;

struct Version {
  size_t structSize;
  Extension *extensions;
  int major, minor; // out
};
constexpr int versionMajor = 0, versionMinor = 1;

struct Metadata {
  size_t structSize;
  Version version;
  uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

struct Error;
struct Context;
constexpr int errorInvalidArgument = 3, errorNotFound = 5, errorExhausted = 8, errorPrecondition = 9,
              errorInternal = 13;
struct ErrorCreateArgs {
  size_t structSize;
  Extension *extensions;
  const char *message;
  int code;
};
struct StreamGetArgs {
  size_t structSize;
  Extension *extensions;
  Context *context;
  void *stream; // out
};
struct AllocateArgs {
  size_t structSize;
  Extension *extensions;
  Context *context;
  size_t size, alignment;
  void *data; // out
};
struct FreeArgs {
  size_t structSize;
  Extension *extensions;
  Context *context;
  size_t size;
  void *data;
};
struct OrdinalGetArgs {
  size_t structSize;
  Extension *extensions;
  Context *context;
  int32_t ordinal; // out
};

/// What XLA offers. Members that are not called here stand as addresses.
struct Api {
  size_t structSize;
  Extension *extensions;
  Version version;
  const void *internal;
  Error *(*errorCreate)(ErrorCreateArgs *);
  void *errorGetMessage, *errorDestroy, *handlerRegister;
  Error *(*streamGet)(StreamGetArgs *);
  void *typeRegister, *contextGet, *stateSet, *stateGet;
  Error *(*allocate)(AllocateArgs *);
  Error *(*free)(FreeArgs *);
  void *threadPoolSchedule, *threadPoolNumThreads, *futureCreate, *futureSetAvailable, *futureSetError, *runIdGet;
  Error *(*ordinalGet)(OrdinalGetArgs *); // since 0.2: structSize says whether it is there
};

/// A contiguous array.
struct Buffer {
  size_t structSize;
  Extension *extensions;
  int type;
  void *data;
  int64_t rank;
  const int64_t *dims;
};
struct Buffers {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  const int *kinds;
  Buffer *const *items;
};
constexpr int kindBuffer = 1;

struct Text {
  const char *data;
  size_t size;
};
struct Attributes {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  const int *kinds;
  const Text *const *names;
  void *const *values;
};
constexpr int attributeText = 4;

struct CallFrame {
  size_t structSize;
  Extension *extensions;
  const Api *api;
  Context *context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
};

} // namespace weft::python::xla
