// Part of Weft. SPDX-License-Identifier: Apache-2.0
// cvt (PTX ISA 9.7.9.21) and cvt.pack. Common conversions have vectorised executors; the rest go lane by lane through
// one function that knows every pair of types.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Convert.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Type;

/// Record::aux of a conversion.
struct Conversion {
  Type from = Type::None, to = Type::None;
  sem::Rounding rounding = sem::Rounding::Zero;
  bool integral = false; ///< .rni and its kin: round to an integral value
  sem::ConvertOptions options;
};

bool isInteger(Type type) { return !ptx::isFloat(type); }

/// A value on its way: an integer of the source's sign, or a float that holds it exactly.
struct Value {
  int64_t integer = 0;
  float single = 0;
  double real = 0;
};

Value read(Type type, uint64_t bits) {
  switch (type) {
  case Type::U8:
  case Type::B8:
    return {int64_t(uint8_t(bits)), 0, 0};
  case Type::S8:
    return {int8_t(bits), 0, 0};
  case Type::U16:
  case Type::B16:
    return {int64_t(uint16_t(bits)), 0, 0};
  case Type::S16:
    return {int16_t(bits), 0, 0};
  case Type::U32:
  case Type::B32:
    return {int64_t(uint32_t(bits)), 0, 0};
  case Type::S32:
    return {int32_t(bits), 0, 0};
  case Type::F16: {
    float f = sem::halfToFloat(uint16_t(bits));
    return {0, f, f};
  }
  case Type::BF16: {
    float f = sem::bfloatToFloat(uint16_t(bits));
    return {0, f, f};
  }
  case Type::F32:
  case Type::TF32: {
    float f = std::bit_cast<float>(uint32_t(bits));
    return {0, f, f};
  }
  case Type::F64: {
    double d = std::bit_cast<double>(bits);
    return {0, float(d), d};
  }
  default:
    return {int64_t(bits), 0, 0};
  }
}

template <typename T> uint64_t toInteger(const Conversion &c, const Value &value) {
  T result;
  if (c.from == Type::F64)
    result = sem::convertToInteger<T>(c.rounding, value.real);
  else if (ptx::isFloat(c.from))
    result = sem::convertToInteger<T>(c.rounding, value.single, c.options.flush);
  else if (c.from == Type::U64)
    result = sem::convertInteger<T>(uint64_t(value.integer), c.options.saturate);
  else
    result = sem::convertInteger<T>(value.integer, c.options.saturate);
  return uint64_t(int64_t(result));
}

/// An integer, or a float rounded to an integral value where asked, as an f64 that rounds on as the source would.
double toReal(const Conversion &c, const Value &value) {
  if (isInteger(c.from))
    return c.from == Type::U64 ? sem::integerToOddDouble(uint64_t(value.integer))
                               : sem::integerToOddDouble(value.integer);
  double real = c.from == Type::F32 ? double(sem::flush(value.single, c.options.flush)) : value.real;
  return c.integral ? sem::roundToIntegral(c.rounding, real) : real;
}

uint64_t convert(const Conversion &c, uint64_t bits) {
  Value value = read(c.from, bits);
  switch (c.to) {
  case Type::U8:
    return toInteger<uint8_t>(c, value);
  case Type::S8:
    return toInteger<int8_t>(c, value);
  case Type::U16:
    return toInteger<uint16_t>(c, value);
  case Type::S16:
    return toInteger<int16_t>(c, value);
  case Type::U32:
    return toInteger<uint32_t>(c, value);
  case Type::S32:
    return toInteger<int32_t>(c, value);
  case Type::U64:
    return toInteger<uint64_t>(c, value);
  case Type::S64:
    return toInteger<int64_t>(c, value);
  case Type::F16:
    return sem::convertToHalf(toReal(c, value), c.options);
  case Type::BF16:
    return sem::convertToBfloat(toReal(c, value), c.options);
  case Type::F32:
    if (isInteger(c.from)) {
      float f = c.from == Type::U64 ? sem::integerToFloat(c.rounding, uint64_t(value.integer))
                                    : sem::integerToFloat(c.rounding, value.integer);
      return std::bit_cast<uint32_t>(c.options.saturate ? sem::saturate(f) : f);
    }
    return std::bit_cast<uint32_t>(sem::convertToFloat(toReal(c, value), c.options));
  case Type::F64:
    if (isInteger(c.from)) {
      double d = c.from == Type::U64 ? sem::integerToDouble(c.rounding, uint64_t(value.integer))
                                     : sem::integerToDouble(c.rounding, value.integer);
      return std::bit_cast<uint64_t>(c.options.saturate ? sem::saturate(d) : d);
    }
    return std::bit_cast<uint64_t>(c.options.saturate ? sem::saturate(toReal(c, value)) : toReal(c, value));
  default:
    return 0;
  }
}

template <typename From, typename To> void runConvert(Warp &warp, const Record &record, uint32_t mask) {
  const auto &c = *static_cast<const Conversion *>(record.aux);
  const From *from = warp.reg<const From>(record.op[1]);
  To results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) { results[lane] = To(convert(c, from[lane])); });
  commit(warp.reg<To>(record.op[0]), results, mask);
}

template <typename R, typename A> constexpr LaneExecutor plain = lanes<[](A a) { return R(a); }, R, A>;

/// A vectorised executor for the pairs that kernels are full of, or null.
Executor fastConversion(const Conversion &c) {
  if (c.options.saturate || c.options.flush || c.options.relu || c.options.satfinite || c.integral)
    return nullptr;
  bool near = c.rounding == sem::Rounding::NearestEven;
  auto is = [&](Type to, Type from) { return c.to == to && c.from == from; };
  bool narrowTo32 = ptx::typeBits(c.to) == 32 && isInteger(c.to) && isInteger(c.from);
  if (narrowTo32 && ptx::typeBits(c.from) == 64)
    return plain<uint32_t, uint64_t>;
  if (narrowTo32 && ptx::typeBits(c.from) == 32)
    return plain<uint32_t, uint32_t>;
  if (narrowTo32 && c.from == Type::U16)
    return plain<uint32_t, uint16_t>;
  if (narrowTo32 && c.from == Type::S16)
    return plain<int32_t, int16_t>;
  if (narrowTo32 && c.from == Type::U8)
    return plain<uint32_t, uint8_t>;
  if (narrowTo32 && c.from == Type::S8)
    return plain<int32_t, int8_t>;
  bool to64 = ptx::typeBits(c.to) == 64 && isInteger(c.to) && isInteger(c.from);
  if (to64 && c.from == Type::U32)
    return plain<uint64_t, uint32_t>;
  if (to64 && c.from == Type::S32)
    return plain<int64_t, int32_t>;
  if (c.to == Type::U16 && isInteger(c.from) && ptx::typeBits(c.from) == 32)
    return plain<uint16_t, uint32_t>;
  if (is(Type::F32, Type::F16))
    return lanes<[](uint16_t a) { return sem::halfToFloat(a); }, float, uint16_t>;
  if (is(Type::F32, Type::BF16))
    return lanes<[](uint16_t a) { return sem::bfloatToFloat(a); }, float, uint16_t>;
  if (is(Type::F16, Type::F32) && near)
    return lanes<[](float a) { return sem::floatToHalf(a); }, uint16_t, float>;
  if (is(Type::BF16, Type::F32) && near)
    return lanes<[](float a) { return sem::floatToBfloat(a); }, uint16_t, float>;
  if (is(Type::F32, Type::S32) && near)
    return plain<float, int32_t>;
  if (is(Type::F32, Type::U32) && near)
    return plain<float, uint32_t>;
  if (is(Type::F64, Type::F32))
    return plain<double, float>;
  return nullptr;
}

sem::Rounding roundingNamed(std::string_view word, sem::Rounding otherwise) {
  if (word.starts_with("rna"))
    return sem::Rounding::NearestAway;
  if (word.starts_with("rn"))
    return sem::Rounding::NearestEven;
  if (word.starts_with("rz"))
    return sem::Rounding::Zero;
  if (word.starts_with("rm"))
    return sem::Rounding::Down;
  return word.starts_with("rp") ? sem::Rounding::Up : otherwise;
}

sem::ConvertOptions convertOptions(const Binding &b) {
  sem::ConvertOptions options;
  options.rounding = roundingNamed(b.modifier("rnd"), sem::Rounding::NearestEven);
  options.flush = b.has("ftz");
  options.saturate = b.has("sat");
  options.satfinite = b.has("satfinite");
  options.relu = b.has("relu");
  return options;
}

void bindConvert(Binding &b) {
  Conversion c;
  c.from = b.type("from");
  c.to = b.type("to");
  c.options = convertOptions(b);
  std::string_view rounding = b.modifier("rnd");
  c.integral = rounding.ends_with('i');
  c.rounding = roundingNamed(rounding, ptx::isFloat(c.from) && isInteger(c.to) ? sem::Rounding::Zero
                                                                               : sem::Rounding::NearestEven);
  if (isInteger(c.to) || isInteger(c.from))
    c.integral = false;
  if (c.integral)
    c.options.rounding = sem::Rounding::NearestEven;
  bool loses = (ptx::isFloat(c.to) && isInteger(c.from)) ||
               (ptx::isFloat(c.to) && ptx::isFloat(c.from) && ptx::typeBits(c.to) < ptx::typeBits(c.from));
  if (loses && rounding.empty())
    b.fail(format("expected a rounding such as '.rn' in '{}'", b.instruction.spelling()));
  b.keep(c);
  if (Executor fast = fastConversion(c)) {
    b.record.run = fast;
    return;
  }
  bool wideFrom = ptx::typeBits(c.from) == 64, wideTo = ptx::typeBits(c.to) == 64;
  b.record.run = wideFrom ? (wideTo ? runConvert<uint64_t, uint64_t> : runConvert<uint64_t, uint32_t>)
                          : (wideTo ? runConvert<uint32_t, uint64_t> : runConvert<uint32_t, uint32_t>);
}

/// cvt to a pair from two f32: the first source is the upper half.
template <auto F> void runPair(Warp &warp, const Record &record, uint32_t mask) {
  const auto &c = *static_cast<const Conversion *>(record.aux);
  const float *high = warp.reg<const float>(record.op[1]), *low = warp.reg<const float>(record.op[2]);
  uint32_t results[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    results[i] = F(c, high[i], low[i]);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

constexpr auto halfPair = [](const Conversion &c, float high, float low) {
  return uint32_t(sem::convertToHalf(high, c.options)) << 16 | sem::convertToHalf(low, c.options);
};
constexpr auto bfloatPair = [](const Conversion &c, float high, float low) {
  return uint32_t(sem::convertToBfloat(high, c.options)) << 16 | sem::convertToBfloat(low, c.options);
};
constexpr auto e4m3Pair = [](const Conversion &c, float high, float low) {
  return uint32_t(sem::convertToE4M3(high, c.options.relu)) << 8 | sem::convertToE4M3(low, c.options.relu);
};
constexpr auto e5m2Pair = [](const Conversion &c, float high, float low) {
  return uint32_t(sem::convertToE5M2(high, c.options.relu)) << 8 | sem::convertToE5M2(low, c.options.relu);
};

void bindPair(Binding &b) {
  Conversion c;
  c.to = b.type("to");
  c.options = convertOptions(b);
  b.keep(c);
  bool simple = c.options.rounding == sem::Rounding::NearestEven && !c.options.relu && !c.options.satfinite;
  switch (c.to) {
  case Type::F16x2:
    b.record.run =
        simple ? lanes<[](float hi, float lo) { return sem::pack16(sem::floatToHalf(lo), sem::floatToHalf(hi)); },
                       uint32_t, float, float>
               : runPair<halfPair>;
    break;
  case Type::BF16x2:
    b.record.run =
        simple ? lanes<[](float hi, float lo) { return sem::pack16(sem::floatToBfloat(lo), sem::floatToBfloat(hi)); },
                       uint32_t, float, float>
               : runPair<bfloatPair>;
    break;
  case Type::E4M3x2:
    b.record.run = runPair<e4m3Pair>;
    break;
  default:
    b.record.run = runPair<e5m2Pair>;
    break;
  }
}

void bindFromFp8(Binding &b) {
  constexpr auto e4m3 = [](uint32_t relu, uint16_t a) {
    auto fix = [&](uint16_t h) {
      return relu && (h & 0x8000) && !sem::isNaNHalf<sem::HalfFormat>(h) ? uint16_t(0) : h;
    };
    return sem::pack16(fix(sem::halfFromE4M3(uint8_t(a))), fix(sem::halfFromE4M3(uint8_t(a >> 8))));
  };
  constexpr auto e5m2 = [](uint32_t relu, uint16_t a) {
    auto fix = [&](uint16_t h) {
      return relu && (h & 0x8000) && !sem::isNaNHalf<sem::HalfFormat>(h) ? uint16_t(0) : h;
    };
    return sem::pack16(fix(sem::halfFromE5M2(uint8_t(a))), fix(sem::halfFromE5M2(uint8_t(a >> 8))));
  };
  b.record.imm = b.has("relu");
  b.record.run =
      b.type("from") == Type::E4M3x2 ? lanesWith<e4m3, uint32_t, uint16_t> : lanesWith<e5m2, uint32_t, uint16_t>;
}

void bindToFp8(Binding &b) {
  constexpr auto e4m3 = [](uint32_t relu, uint32_t a) {
    return uint16_t(sem::convertToE4M3(sem::halfToFloat(sem::low16(a)), relu) |
                    sem::convertToE4M3(sem::halfToFloat(sem::high16(a)), relu) << 8);
  };
  constexpr auto e5m2 = [](uint32_t relu, uint32_t a) {
    return uint16_t(sem::convertToE5M2(sem::halfToFloat(sem::low16(a)), relu) |
                    sem::convertToE5M2(sem::halfToFloat(sem::high16(a)), relu) << 8);
  };
  b.record.imm = b.has("relu");
  b.record.run =
      b.type("to") == Type::E4M3x2 ? lanesWith<e4m3, uint16_t, uint32_t> : lanesWith<e5m2, uint16_t, uint32_t>;
}

void runTF32(Warp &warp, const Record &record, uint32_t mask) {
  const auto &c = *static_cast<const Conversion *>(record.aux);
  const float *from = warp.reg<const float>(record.op[1]);
  uint32_t results[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    results[i] = sem::convertToTF32(from[i], c.options);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

void bindTF32(Binding &b) {
  Conversion c;
  c.options = convertOptions(b);
  b.keep(c);
  b.record.run = runTF32;
}

/// cvt.pack.sat.convertType.abType{.b32}: Record::imm holds bits and sign.
void bindPack(Binding &b) {
  std::string_view to = b.modifier("to");
  unsigned bits = to.ends_with("16") ? 16 : to.ends_with('8') ? 8 : to.ends_with('4') ? 4 : 2;
  b.record.imm = bits | (to[0] == 's' ? 256u : 0u);
  b.setDestination(0, b.destination(b.operand(0), Type::B32));
  b.record.op[1] = b.source(b.operand(1), Type::S32);
  b.record.op[2] = b.source(b.operand(2), Type::S32);
  b.record.op[3] = b.operandCount() > 3 ? b.source(b.operand(3), Type::B32) : b.constant32(0);
  b.record.run = lanesWith<[](uint32_t o, int32_t x, int32_t y, uint32_t z) {
    return sem::convertPack(x, y, z, o & 255, (o & 256) != 0);
  },
                           uint32_t, int32_t, int32_t, uint32_t>;
}

constexpr auto cls = InstructionClass::Convert;
#define WEFT_CONVERTED "u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64"

const Form forms[] = {
    {"cvt", "rnd=rn|rz relu? satfinite? to=f16x2|bf16x2 from=f32", "d:to s:f32 s:f32", cls, bindPair},
    {"cvt", "rnd=rn satfinite relu? to=e4m3x2|e5m2x2 from=f32", "d:b16 s:f32 s:f32", cls, bindPair},
    {"cvt", "rnd=rn satfinite relu? to=e4m3x2|e5m2x2 from=f16x2", "d:b16 s:b32", cls, bindToFp8},
    {"cvt", "rnd=rn relu? to=f16x2 from=e4m3x2|e5m2x2", "d:to s:b16", cls, bindFromFp8},
    {"cvt", "rnd=rna|rn|rz satfinite? relu? tf32 from=f32", "d:tf32 s:f32", cls, bindTF32},
    {"cvt", "pack sat to=u16|s16|u8|s8|u4|s4|u2|s2 s32 b32?", "*", cls, bindPack},
    {"cvt", "rnd=rni|rzi|rmi|rpi|rn|rz|rm|rp? ftz? sat? relu? satfinite? to=" WEFT_CONVERTED " from=" WEFT_CONVERTED,
     "d:to+ s:from+", cls, bindConvert},
};

} // namespace

std::span<const Form> convertForms() { return forms; }

} // namespace weft::simulator::machine
