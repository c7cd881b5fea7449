// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/PTX/Syntax.h"

#include <algorithm>

namespace weft::simulator::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  unsigned bits;
  bool isSigned, isFloat;
};

// In the order of the enumeration.
constexpr TypeRow rows[] = {
    {Type::None, "", 0, false, false},        {Type::Pred, "pred", 1, false, false},
    {Type::B8, "b8", 8, false, false},        {Type::B16, "b16", 16, false, false},
    {Type::B32, "b32", 32, false, false},     {Type::B64, "b64", 64, false, false},
    {Type::B128, "b128", 128, false, false},  {Type::U8, "u8", 8, false, false},
    {Type::U16, "u16", 16, false, false},     {Type::U32, "u32", 32, false, false},
    {Type::U64, "u64", 64, false, false},     {Type::S8, "s8", 8, true, false},
    {Type::S16, "s16", 16, true, false},      {Type::S32, "s32", 32, true, false},
    {Type::S64, "s64", 64, true, false},      {Type::U16x2, "u16x2", 32, false, false},
    {Type::S16x2, "s16x2", 32, true, false},  {Type::F16, "f16", 16, true, true},
    {Type::F16x2, "f16x2", 32, true, true},   {Type::BF16, "bf16", 16, true, true},
    {Type::BF16x2, "bf16x2", 32, true, true}, {Type::TF32, "tf32", 32, true, true},
    {Type::F32, "f32", 32, true, true},       {Type::F64, "f64", 64, true, true},
    {Type::E4M3, "e4m3", 8, true, true},      {Type::E5M2, "e5m2", 8, true, true},
    {Type::E4M3x2, "e4m3x2", 16, true, true}, {Type::E5M2x2, "e5m2x2", 16, true, true},
    {Type::B1, "b1", 1, false, false},        {Type::U4, "u4", 4, false, false},
    {Type::S4, "s4", 4, true, false},
};

} // namespace

Type typeNamed(std::string_view word) {
  auto found = std::find_if(std::begin(rows) + 1, std::end(rows), [&](const TypeRow &row) { return row.name == word; });
  return found == std::end(rows) ? Type::None : found->type;
}

std::string_view typeName(Type type) { return rows[size_t(type)].name; }
unsigned typeBits(Type type) { return rows[size_t(type)].bits; }
bool isSigned(Type type) { return rows[size_t(type)].isSigned; }
bool isFloat(Type type) { return rows[size_t(type)].isFloat; }

} // namespace weft::simulator::ptx
