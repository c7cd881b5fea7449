// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensor maps, as cuTensorMapEncodeTiled makes them: what cp.async.bulk.tensor reads to find a box of a tensor. The
// driver's 128 bytes are not documented, so these are the simulator's own, and a map is only good on the device that
// made it.
//
//   TensorMap map{.type = TensorType::BF16, .rank = 2, .address = x, .dims = {64, 1024}, .strides = {128},
//                 .box = {64, 128}, .swizzle = 128};
//   Result<std::array<std::byte, 128>> bytes = encode(map);    // the value of a kernel's parameter
#pragma once

#include "runtime/Simulator/Interface/Export.h"
#include "runtime/Simulator/Interface/Memory.h"
#include "runtime/Support/Status.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace weft::simulator {

/// CUtensorMapDataType, in its order.
enum class TensorType : uint8_t { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32Flushed, TF32, TF32Flushed };

/// Bytes of an element.
unsigned bytesOf(TensorType type);
/// The type of a name such as "bf16"; 8-bit floating-point types travel as u8.
WEFT_SIMULATOR_API std::optional<TensorType> tensorTypeNamed(std::string_view name);

/// A tensor in global memory and the boxes that are copied from and to it, dimensions innermost first.
struct TensorMap {
  TensorType type = TensorType::F16;
  uint8_t rank = 1;
  Address address = 0;
  std::array<uint64_t, 5> dims{1, 1, 1, 1, 1};
  std::array<uint64_t, 4> strides{}; ///< bytes from one index of dimension 1, 2, ... to the next
  std::array<uint32_t, 5> box{1, 1, 1, 1, 1};
  std::array<uint32_t, 5> elementStrides{1, 1, 1, 1, 1};
  uint8_t swizzle = 0; ///< 0, 32, 64 or 128 bytes
  bool fillsNaN = false;
};

/// What cuTensorMapEncodeTiled refuses: InvalidArgument.
Status check(const TensorMap &map);
/// The 128 bytes of a map. Errors: those of `check`.
WEFT_SIMULATOR_API Result<std::array<std::byte, 128>> encode(const TensorMap &map);
/// The same of a map that a program has not finished.
std::array<std::byte, 128> encodeUnchecked(const TensorMap &map);

/// The map of 128 bytes, or none where they are of no map. It may be unfinished.
std::optional<TensorMap> decodeTensorMap(std::span<const std::byte, 128> bytes);
/// The same for a program that makes a map field by field, for which 128 zeros are an empty one.
std::optional<TensorMap> decodeUnfinished(std::span<const std::byte, 128> bytes);

} // namespace weft::simulator
