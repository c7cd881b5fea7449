// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LargeArguments.h. Labels are of the braces that they stand in, so every copy of the code has its own.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/LargeArguments.h"
#include <array>

using namespace mlir;

namespace weft {
namespace {

/// A float type as PTX spells its instructions and its numbers.
struct Format {
  const char *width;    // "32"
  const char *prefix;   // of a number in hexadecimal
  const char *exact;    // quotients below it have all their bits: 2^24
  const char *infinity; // these three as bits
  const char *fraction; // the mask of the bits after the point
  const char *hidden;   // the bit before the point
  unsigned bits;        // after the point
  unsigned room;        // bits that a mantissa leaves in an integer of the width
};

constexpr Format f32Format = {"32", "0f", "4B800000", "7F800000", "8388607", "8388608", 23, 8};
constexpr Format f64Format = {
    "64", "0d", "4340000000000000", "7FF0000000000000", "4503599627370495", "4503599627370496", 52, 11};

/// A quotient rounded toward zero that has all its bits gives the remainder by one fused multiply-add. Else the
/// mantissas are divided as integers: n steps of the exponent at a time, as many as there is room for.
std::string remainderCode(const Format &f) {
  std::string w = f.width, bits = std::to_string(f.bits), room = std::to_string(f.room);
  std::string u = ".u" + w + " ", b = ".b" + w + " ", fl = ".f" + w + " ";
  std::string s = "{ .reg .f" + w + " q, r, a, c; .reg .b" + w + " x, y, m, n, e, k, t; .reg .pred p; ";
  if (w == "64")
    s += ".reg .b32 s; ";
  s += "div.rz" + fl + "q, $1, $2; cvt.rzi.f" + w + fl + "q, q; neg" + fl + "r, q; fma.rn" + fl + "r, r, $2, $1; ";
  s += "abs" + fl + "a, $1; abs" + fl + "c, $2; abs" + fl + "q, q; ";
  s += "setp.lt" + fl + "p, a, c; @p mov" + fl + "r, $1; @p bra around; ";
  s += "setp.lt" + fl + "p, q, " + f.prefix + f.exact + "; @p bra around; ";
  s += "setp.geu" + fl + "p, a, " + f.prefix + f.infinity + "; @p bra around; ";
  s += "setp.leu" + fl + "p, c, " + f.prefix + std::string(std::string(f.infinity).size(), '0') + "; @p bra around; ";
  // x is no subnormal here: its quotient is too large.
  s += "mov" + b + "x, a; mov" + b + "y, c; shr" + u + "n, x, " + bits + "; shr" + u + "e, y, " + bits + "; ";
  s += "and" + b + "x, x, " + f.fraction + "; or" + b + "x, x, " + f.hidden + "; ";
  s += "and" + b + "y, y, " + f.fraction + "; ";
  s += "setp.ne" + u + "p, e, 0; @p or" + b + "y, y, " + f.hidden + "; @!p mov" + b + "e, 1; ";
  s += "sub" + u + "n, n, e; rem" + u + "m, x, y; ";
  s += "again: setp.eq" + u + "p, n, 0; @p bra divided; min" + u + "k, n, " + room + "; ";
  s += w == "64" ? "cvt.u32.u64 s, k; shl.b64 m, m, s; " : "shl.b32 m, m, k; ";
  s += "rem" + u + "m, m, y; sub" + u + "n, n, k; bra again; ";
  // m times the unit of y, which may be subnormal.
  s += "divided: cvt.rn.f" + w + ".u" + w + " r, m; setp.gt" + u + "p, e, " + bits + "; ";
  s += "sub" + u + "t, e, " + bits + "; sub" + u + "k, e, 1; ";
  s += w == "64" ? "@p shl.b64 t, t, 52; cvt.u32.u64 s, k; @!p mov.b64 t, 1; @!p shl.b64 t, t, s; "
                 : "@p shl.b32 t, t, 23; @!p mov.b32 t, 1; @!p shl.b32 t, t, k; ";
  s += "mov" + b + "a, t; mul.rn" + fl + "r, r, a; ";
  return s + "around: copysign" + fl + "$0, $1, r; }";
}

/// The bits of 1 / (2 pi) after the point.
constexpr std::array<const char *, 7> turnWords = {"0x28BE60DB", "0x9391054A", "0x7F09D5F4", "0x7D4D3770",
                                                   "0x36D8A566", "0x4F10E410", "0x7F9458EA"};

/// The mantissa times 2^k / (2 pi), of which the whole turns are left out: three words of 1 / (2 pi) from bit k on.
std::string turnsCode() {
  std::string s = "{ .reg .f64 w; .reg .f32 a; .reg .b32 x, k, i, h, m; .reg .b64 t, v; .reg .pred p, q, r; "
                  ".reg .b32 c0, c1, c2, c3; cvt.f64.f32 w, $1; abs.f32 a, $1; "
                  "setp.ltu.f32 p, a, 0f4E800000; @p bra around; setp.eq.f32 p, a, 0f7F800000; @p bra around; "
                  "mov.b32 x, a; shr.u32 k, x, 23; sub.u32 k, k, 150; and.b32 m, x, 8388607; or.b32 m, m, 8388608; "
                  "shr.u32 i, k, 5; and.b32 k, k, 31; setp.eq.u32 p, i, 1; setp.eq.u32 q, i, 2; setp.eq.u32 r, i, 3; ";
  for (unsigned j = 0; j < 4; ++j) {
    std::string c = "c" + std::to_string(j);
    s += "mov.b32 " + c + ", " + turnWords[j] + "; @p mov.b32 " + c + ", " + turnWords[j + 1] + "; @q mov.b32 " + c +
         ", " + turnWords[j + 2] + "; @r mov.b32 " + c + ", " + turnWords[j + 3] + "; ";
  }
  return s + "shf.l.clamp.b32 h, c1, c0, k; mul.lo.u32 h, h, m; mov.b64 t, {0, h}; "
             "shf.l.clamp.b32 h, c2, c1, k; mul.wide.u32 v, h, m; add.u64 t, t, v; "
             "shf.l.clamp.b32 h, c3, c2, k; mul.hi.u32 h, h, m; cvt.u64.u32 v, h; add.u64 t, t, v; "
             "cvt.rn.f64.s64 w, t; mul.rn.f64 w, w, 0d3C1921FB54442D18; "
             "setp.lt.f32 p, $1, 0f00000000; @p neg.f64 w, w; "
             "around: mov.f64 $0, w; }";
}

} // namespace

Value remainderOf(Value x, Value y, Emitter &e) {
  bool wide = x.getType().isF64();
  static const std::string narrowCode = remainderCode(f32Format), wideCode = remainderCode(f64Format);
  return e
      .inlineAsm(wide ? wideCode : narrowCode, wide ? "=d,d,d" : "=f,f,f", x.getType(), {x, y},
                 /*sideEffects=*/false)
      .front();
}

Value withinTurns(Value x, Emitter &e) {
  static const std::string code = turnsCode();
  return e.inlineAsm(code, "=d,f", e.b.getF64Type(), {x}, /*sideEffects=*/false).front();
}

} // namespace weft
