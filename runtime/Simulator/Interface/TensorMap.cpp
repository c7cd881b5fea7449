// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/TensorMap.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <cstring>

namespace weft::simulator {
namespace {

constexpr uint64_t mark = 0x5754'656e'736f'7231; // "WTensor1"

struct TypeName {
  std::string_view name;
  TensorType type;
};
constexpr TypeName typeNames[] = {{"u8", TensorType::U8},   {"s8", TensorType::U8},     {"e4m3", TensorType::U8},
                                  {"e5m2", TensorType::U8}, {"u16", TensorType::U16},   {"s16", TensorType::U16},
                                  {"u32", TensorType::U32}, {"s32", TensorType::S32},   {"u64", TensorType::U64},
                                  {"s64", TensorType::S64}, {"f16", TensorType::F16},   {"f32", TensorType::F32},
                                  {"f64", TensorType::F64}, {"bf16", TensorType::BF16}, {"tf32", TensorType::TF32}};

/// Little-endian fields one after another.
class Writer {
public:
  explicit Writer(std::byte *to) : to_(to) {}
  void put(uint64_t value, unsigned bytes) {
    std::memcpy(to_, &value, bytes);
    to_ += bytes;
  }

private:
  std::byte *to_;
};

class Reader {
public:
  explicit Reader(const std::byte *from) : from_(from) {}
  uint64_t take(unsigned bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from_, bytes);
    from_ += bytes;
    return value;
  }

private:
  const std::byte *from_;
};

Status checkSizes(const TensorMap &map) {
  auto refuse = [](std::string message) { return failure(StatusCode::InvalidArgument, std::move(message)); };
  for (unsigned i = 0; i < map.rank; ++i) {
    if (map.dims[i] < 1 || map.dims[i] > uint64_t{1} << 32)
      return refuse(format("expected a tensor map of dimensions from 1 to 2^32, but got {}", map.dims[i]));
    if (map.box[i] < 1 || map.box[i] > 256)
      return refuse(format("expected a box of 1 to 256 elements in each dimension, but got {}", map.box[i]));
    if (map.elementStrides[i] < 1 || map.elementStrides[i] > 8)
      return refuse(format("expected element strides from 1 to 8, but got {}", map.elementStrides[i]));
    if (i + 1 < map.rank && (map.strides[i] % 16 || map.strides[i] >= uint64_t{1} << 40))
      return refuse(format("expected a tensor map's strides to be multiples of 16 bytes, but got {}", map.strides[i]));
  }
  return {};
}

} // namespace

unsigned bytesOf(TensorType type) {
  static constexpr unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return bytes[size_t(type)];
}

std::optional<TensorType> tensorTypeNamed(std::string_view name) {
  for (const TypeName &each : typeNames)
    if (each.name == name)
      return each.type;
  return std::nullopt;
}

Status check(const TensorMap &map) {
  auto refuse = [](std::string message) { return failure(StatusCode::InvalidArgument, std::move(message)); };
  if (map.rank < 1 || map.rank > 5)
    return refuse(format("expected a tensor map of 1 to 5 dimensions, but got {}", map.rank));
  if (map.address % 16)
    return refuse(format("expected a tensor map's address to be a multiple of 16, but got {:#x}", map.address));
  if (Status good = checkSizes(map); !good)
    return good;
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    return refuse(format("expected a swizzle of 32, 64 or 128 bytes, but got {}", map.swizzle));
  const uint64_t row = (map.box[0] + map.elementStrides[0] - 1) / map.elementStrides[0] * bytesOf(map.type);
  if (row % 16)
    return refuse(format("expected the rows of a box to be a multiple of 16 bytes, but got {}", row));
  if (map.swizzle && row > map.swizzle)
    return refuse(
        format("expected the rows of a box to have at most the {} bytes of its swizzle, but got {}", map.swizzle, row));
  return {};
}

Result<std::array<std::byte, 128>> encode(const TensorMap &map) {
  if (Status good = check(map); !good)
    return std::unexpected(good.error());
  return encodeUnchecked(map);
}

std::array<std::byte, 128> encodeUnchecked(const TensorMap &map) {
  std::array<std::byte, 128> bytes{};
  Writer writer(bytes.data());
  writer.put(mark, 8);
  writer.put(map.address, 8);
  for (uint64_t each : {uint64_t(map.type), uint64_t(map.rank), uint64_t(map.swizzle), uint64_t(map.fillsNaN)})
    writer.put(each, 1);
  for (unsigned i = 0; i < 5; ++i) {
    writer.put(map.dims[i] - 1, 4);
    writer.put(map.box[i], 2);
    writer.put(map.elementStrides[i], 1);
  }
  for (uint64_t stride : map.strides)
    writer.put(stride, 8);
  return bytes;
}

std::optional<TensorMap> decodeTensorMap(std::span<const std::byte, 128> bytes) {
  Reader reader(bytes.data());
  if (reader.take(8) != mark)
    return std::nullopt;
  TensorMap map;
  map.address = reader.take(8);
  map.type = TensorType(reader.take(1));
  map.rank = uint8_t(reader.take(1));
  map.swizzle = uint8_t(reader.take(1));
  map.fillsNaN = reader.take(1) != 0;
  for (unsigned i = 0; i < 5; ++i) {
    map.dims[i] = reader.take(4) + 1;
    map.box[i] = uint32_t(reader.take(2));
    map.elementStrides[i] = uint32_t(reader.take(1));
  }
  for (uint64_t &stride : map.strides)
    stride = reader.take(8);
  if (map.rank < 1 || map.rank > 5 || map.type > TensorType::TF32Flushed)
    return std::nullopt;
  return map;
}

std::optional<TensorMap> decodeUnfinished(std::span<const std::byte, 128> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte each) { return each == std::byte{}; }))
    return TensorMap{.type = TensorType::U8};
  return decodeTensorMap(bytes);
}

} // namespace weft::simulator
