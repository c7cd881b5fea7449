// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Types.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <array>

namespace weft::library {
namespace {

struct Named {
  std::string_view name;
  ScalarKind kind;
  uint8_t bits;
};

struct NamedElement {
  std::string_view name;
  uint32_t bytes;
};

/// By the number of the element.
constexpr std::array<NamedElement, 9> elements{{{"i1", 1},
                                                {"i8", 1},
                                                {"i32", 4},
                                                {"i64", 8},
                                                {"fp16", 2},
                                                {"bf16", 2},
                                                {"fp32", 4},
                                                {"fp8e4nv", 1},
                                                {"fp8e5", 1}}};

constexpr std::array<Named, 16> scalars{{{"i1", ScalarKind::Unsigned, 1},
                                         {"i8", ScalarKind::Signed, 8},
                                         {"i16", ScalarKind::Signed, 16},
                                         {"i32", ScalarKind::Signed, 32},
                                         {"i64", ScalarKind::Signed, 64},
                                         {"u8", ScalarKind::Unsigned, 8},
                                         {"u16", ScalarKind::Unsigned, 16},
                                         {"u32", ScalarKind::Unsigned, 32},
                                         {"u64", ScalarKind::Unsigned, 64},
                                         {"fp8e4nv", ScalarKind::Float, 8},
                                         {"fp8e4b15", ScalarKind::Float, 8},
                                         {"fp8e5", ScalarKind::Float, 8},
                                         {"fp16", ScalarKind::Float, 16},
                                         {"bf16", ScalarKind::BFloat, 16},
                                         {"fp32", ScalarKind::Float, 32},
                                         {"fp64", ScalarKind::Float, 64}}};

} // namespace

Result<ArgumentType> parseArgumentType(std::string_view text) {
  bool pointer = text.starts_with('*');
  std::string_view name = text.substr(pointer ? 1 : 0);
  auto found = std::ranges::find(scalars, name, &Named::name);
  bool floatInByte = found != scalars.end() && found->kind == ScalarKind::Float && found->bits == 8;
  if (found == scalars.end() || (floatInByte && !pointer))
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected a type like '*fp16', 'fp32' or 'i64', but got '{}'", text));
  return ArgumentType{pointer, found->kind, found->bits, std::string(text)};
}

std::string_view elementName(Element element) {
  auto number = static_cast<size_t>(element);
  return number < elements.size() ? elements[number].name : "unknown";
}

uint32_t elementBytes(Element element) {
  auto number = static_cast<size_t>(element);
  return number < elements.size() ? elements[number].bytes : 0;
}

Result<Element> parseElement(std::string_view text) {
  auto found = std::ranges::find(elements, text, &NamedElement::name);
  if (found == elements.end())
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected i1, i8, i32, i64, fp16, bf16, fp32, fp8e4nv or fp8e5, but got '{}'", text));
  return static_cast<Element>(found - elements.begin());
}

} // namespace weft::library
