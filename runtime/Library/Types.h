// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The types of kernel arguments as signatures and manifests spell them, which is how Triton spells them.
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::library {

/// What an argument is made of.
enum class ScalarKind : uint8_t { Signed, Unsigned, Float, BFloat };

/// One argument's type. "*fp16" is a pointer to {Float, 16}; "i32" the value {Signed, 32}; "i1" is {Unsigned, 1}.
struct ArgumentType {
  bool pointer = false;
  ScalarKind kind = ScalarKind::Signed;
  uint8_t bits = 32;
  std::string spelling; ///< the name as it was given

  /// Bytes of the kernel parameter, which is also its alignment: 8 for a pointer, 1 for i1.
  uint32_t parameterBytes() const { return pointer ? 8 : bits < 8 ? 1 : bits / 8; }
};

/// Parses i1 i8..i64 u8..u64 fp16 bf16 fp32 fp64 (and, behind a pointer only, fp8e4nv fp8e4b15 fp8e5), each with an
/// optional leading '*'. InvalidArgument names what was expected.
Result<ArgumentType> parseArgumentType(std::string_view text);

/// What a tensor of a program is made of. The numbers are those of `weft_element` in weft.h and never change.
enum class Element : int32_t { I1 = 0, I8 = 1, I32 = 2, I64 = 3, FP16 = 4, BF16 = 5, FP32 = 6, FP8E4NV = 7, FP8E5 = 8 };

/// "fp16"; "unknown" for a number that is no element.
std::string_view elementName(Element element);
/// Bytes in memory; i1 takes one. 0 for a number that is no element.
uint32_t elementBytes(Element element);
/// Parses i1 i8 i32 i64 fp16 bf16 fp32 fp8e4nv fp8e5. InvalidArgument names what was expected.
Result<Element> parseElement(std::string_view text);

} // namespace weft::library
