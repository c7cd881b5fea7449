// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel has as parameters behind its own: how PTX says that a launch makes them, and their values.
// Whoever launches such a kernel gives its own parameters alone; the device's driver makes the 128 bytes of each map.
//
//   // weft.tensor_map 1 attend at=128 type=f16 swizzle=128 box=64,64,1 base=1*i8@32 sizes=64,1*i4@120,2147483648
//                                                                                strides=2*i8@56,2*i8@48
//
// A number is a sum of products: "2*i8@56" is twice the parameter of 8 bytes, signed, at byte 56 (docs/LibraryFormat.md).
#pragma once

#include "runtime/Support/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// A type of elements, and its CUtensorMapDataType.
struct TensorMapType {
  std::string_view name;
  int number;
};
constexpr std::array<TensorMapType, 10> tensorMapTypes{{{"u8", 0},
                                                        {"u16", 1},
                                                        {"u32", 2},
                                                        {"s32", 3},
                                                        {"u64", 4},
                                                        {"s64", 5},
                                                        {"f16", 6},
                                                        {"f32", 7},
                                                        {"f64", 8},
                                                        {"bf16", 9}}};

/// What a tensor map is made of at a launch, axes innermost first; strides in bytes.
struct TensorMapValues {
  std::string type;     ///< one of `tensorMapTypes`
  uint32_t swizzle = 0; ///< 32, 64 or 128 bytes; 0 where a box's lines are as they are
  uint64_t address = 0;
  std::vector<uint32_t> box;
  std::vector<uint64_t> sizes, strides;
  bool operator==(const TensorMapValues &) const = default;
};
using TensorMapBytes = std::array<std::byte, 128>;

/// A sum of products of a launch's parameters.
struct ParameterSum {
  struct Factor {
    uint32_t bytes, offset;
  };
  struct Term {
    int64_t coefficient;
    std::vector<Factor> factors;
  };
  std::vector<Term> terms;
};

/// How a launch makes one map.
struct TensorMapRecipe {
  uint32_t at = 0; ///< where its bytes begin among the kernel's parameters
  std::string type;
  uint32_t swizzle = 0;
  std::vector<uint32_t> box;
  ParameterSum base;
  std::vector<ParameterSum> sizes, strides;

  /// The values for a launch with these parameters. InvalidArgument where they are of no tensor map.
  Result<TensorMapValues> evaluate(std::span<const std::byte> parameters) const;
};
/// Those of a kernel, by rising place.
using TensorMapRecipes = std::vector<TensorMapRecipe>;

using TensorMapsOfEntries = std::map<std::string, TensorMapRecipes, std::less<>>;

/// The maps of each entry of a module that has any. Corrupt where the text is no such description, Unsupported where it
/// is of a later version.
Result<TensorMapsOfEntries> tensorMapsOf(std::string_view ptx);

/// Makes the parameters of launches complete, and keeps the maps of the last ones. Safe to use from several threads.
class TensorMapParameters {
public:
  using Encode = std::function<Result<TensorMapBytes>(const TensorMapValues &)>;

  TensorMapParameters(TensorMapRecipes recipes, Encode encode)
      : recipes(std::move(recipes)), encode(std::move(encode)) {}

  /// Whether a launch's parameters lack the maps.
  bool lacksIn(std::span<const std::byte> parameters) const {
    return !recipes.empty() && parameters.size() <= recipes.front().at;
  }
  /// `parameters` with the maps behind them.
  Result<std::vector<std::byte>> complete(std::span<const std::byte> parameters);

private:
  Result<TensorMapBytes> bytesOf(const TensorMapValues &values);

  TensorMapRecipes recipes;
  Encode encode;
  std::mutex guard;
  std::vector<std::pair<TensorMapValues, TensorMapBytes>> kept;
  size_t next = 0;
};

} // namespace weft
