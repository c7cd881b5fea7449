// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Tensor/InstructionDescriptor.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace weft::simulator::machine {
namespace {

using semantics::AccumulatorType;
using semantics::TensorElement;

uint32_t field(uint64_t bits, unsigned at, unsigned width) { return uint32_t(bits >> at & ((1u << width) - 1)); }

std::optional<TensorElement> elementOf(TensorKind kind, uint32_t code) {
  using enum TensorElement;
  switch (kind) {
  case TensorKind::F16:
    return code == 0 ? std::optional(F16) : code == 1 ? std::optional(BF16) : std::nullopt;
  case TensorKind::TF32:
    return code == 2 ? std::optional(TF32) : std::nullopt;
  case TensorKind::I8:
    return code == 0 ? std::optional(U8) : code == 1 ? std::optional(S8) : std::nullopt;
  case TensorKind::MXF4:
  case TensorKind::MXF4NVF4:
    return code == 1 ? std::optional(E2M1) : std::nullopt;
  case TensorKind::F8F6F4:
  case TensorKind::MXF8F6F4:
    switch (code) {
    case 0:
      return E4M3;
    case 1:
      return E5M2;
    case 3:
      return E2M3;
    case 4:
      return E3M2;
    case 5:
      return E2M1;
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<AccumulatorType> accumulatorOf(TensorKind kind, uint32_t code) {
  if (kind == TensorKind::I8)
    return code == 2 ? std::optional(AccumulatorType::S32) : std::nullopt;
  if (code == 1)
    return AccumulatorType::F32;
  return code == 0 && kind != TensorKind::TF32 ? std::optional(AccumulatorType::F16) : std::nullopt;
}

/// PTX ISA 9.7.16.2.1, table of shapes; of 8-bit elements whose N is contiguous 9.7.16.10.1.
std::string shapeFault(const InstructionDescriptor &shape, TensorKind kind, bool pair, bool stationary) {
  if (stationary) {
    if (shape.m != 32 && shape.m != 64 && shape.m != 128)
      return format("expected 32, 64 or 128 rows with '.ws', but got {}", shape.m);
    if (shape.n != 64 && shape.n != 128 && shape.n != 256)
      return format("expected 64, 128 or 256 columns with '.ws', but got {}", shape.n);
    return {};
  }
  const uint32_t rows = pair ? 128 : 64;
  if (shape.m != rows && shape.m != 2 * rows)
    return format("expected {} or {} rows, but got {}", rows, 2 * rows, shape.m);
  uint32_t step = pair ? 16 : 8;
  if (kind == TensorKind::I8)
    step = pair ? 32 : shape.n > 32 ? 16 : 8;
  if (bitsOf(shape.b) == 8 && shape.transposeB)
    step = std::max(step, pair ? 32u : 16u);
  if (shape.n < step || shape.n > 256 || shape.n % step)
    return format("expected a multiple of {} up to 256 as number of columns, but got {}", step, shape.n);
  return {};
}

} // namespace

InstructionDescriptor InstructionDescriptor::decode(uint32_t bits, TensorKind kind, bool pair, bool stationary) {
  InstructionDescriptor shape;
  const auto a = elementOf(kind, field(bits, 7, 3)), b = elementOf(kind, field(bits, 10, 3));
  const auto d = accumulatorOf(kind, field(bits, 4, 2));
  shape.m = field(bits, 24, 5) << 4;
  shape.n = field(bits, 17, 6) << 3;
  shape.saturate = field(bits, 3, 1);
  shape.negateA = field(bits, 13, 1);
  shape.negateB = field(bits, 14, 1);
  shape.transposeA = field(bits, 15, 1);
  shape.transposeB = field(bits, 16, 1);
  shape.mostShift = stationary ? uint8_t(field(bits, 30, 2)) : 0;
  if (!a || !b || !d) {
    shape.fault = format("has an instruction descriptor {:#x} whose types its '.kind' does not have", bits);
    return shape;
  }
  shape.a = *a;
  shape.b = *b;
  shape.d = *d;
  if (field(bits, 0, 3))
    shape.fault = format("has an instruction descriptor {:#x} of a sparse A, and is none of tcgen05.mma.sp", bits);
  else if (field(bits, 6, 1) || field(bits, 23, 1) || field(bits, 29, 1) || (!stationary && field(bits, 30, 2)))
    shape.fault = format("has an instruction descriptor {:#x} in which reserved bits are set", bits);
  else if (kind == TensorKind::I8 ? shape.negateA || shape.negateB : shape.saturate)
    shape.fault = format("has an instruction descriptor {:#x} that {} what this '.kind' cannot", bits,
                         kind == TensorKind::I8 ? "negates" : "saturates");
  else if (std::string fault = shapeFault(shape, kind, pair, stationary); !fault.empty())
    shape.fault = fault;
  return shape;
}

namespace {

/// What is wrong with a scaled kind's descriptor whose types are right (PTX ISA 9.7.16.4.2, tables 43 and 44).
std::string scaledFault(const InstructionDescriptor &shape, uint32_t bits, TensorKind kind, unsigned scales,
                        bool pair) {
  if (field(bits, 0, 3) || field(bits, 3, 1) || field(bits, 6, 1) || field(bits, 24, 3) ||
      (!isPacked(kind) && field(bits, 31, 1)) || (isPacked(kind) && field(bits, 12, 1)))
    return format("has an instruction descriptor {:#x} in which reserved bits are set", bits);
  if (isPacked(kind) && field(bits, 31, 1))
    return "has an instruction descriptor with 96 elements along K, which sm_103a alone has";
  if (shape.scale == semantics::ScaleElement::UE4M3 && (kind != TensorKind::MXF4NVF4 || scales != 4))
    return format("has an instruction descriptor {:#x} whose scales its '.kind' and scale vector do not have", bits);
  if (shape.scaleA % scales || shape.scaleB % scales)
    return format("expected multiples of {} as places of scales, but got {} and {}", scales, shape.scaleA,
                  shape.scaleB);
  if (isPacked(kind) && (shape.transposeA || shape.transposeB))
    return format("has an instruction descriptor {:#x} that turns what this '.kind' cannot", bits);
  if (pair && shape.m != 128 && shape.m != 256)
    return format("expected 128 or 256 rows, but got {}", shape.m);
  if ((!pair && shape.m != 128) || shape.n < 8 || shape.n > 256)
    return format("expected 128 rows and 8 to 256 columns, but got {} and {}", shape.m, shape.n);
  const uint32_t step = (shape.transposeB && bitsOf(shape.b) == 8 ? 16 : 8) * (pair ? 2 : 1);
  if (shape.n % step)
    return format("expected a multiple of {} as number of columns, but got {}", step, shape.n);
  return {};
}

} // namespace

InstructionDescriptor InstructionDescriptor::decodeScaled(uint32_t bits, TensorKind kind, unsigned scales, bool pair) {
  InstructionDescriptor shape;
  const auto a = elementOf(kind, field(bits, 7, 3)), b = elementOf(kind, field(bits, 10, isPacked(kind) ? 2 : 3));
  shape.m = field(bits, 27, 2) << 7;
  shape.n = field(bits, 17, 6) << 3;
  shape.negateA = field(bits, 13, 1);
  shape.negateB = field(bits, 14, 1);
  shape.transposeA = field(bits, 15, 1);
  shape.transposeB = field(bits, 16, 1);
  shape.scale = field(bits, 23, 1) ? semantics::ScaleElement::UE8M0 : semantics::ScaleElement::UE4M3;
  shape.scaleA = uint8_t(field(bits, 29, 2));
  shape.scaleB = uint8_t(field(bits, 4, 2));
  if (!a || !b) {
    shape.fault = format("has an instruction descriptor {:#x} whose types its '.kind' does not have", bits);
    return shape;
  }
  shape.a = *a;
  shape.b = *b;
  shape.fault = scaledFault(shape, bits, kind, scales, pair);
  return shape;
}

namespace {

/// What a descriptor of shared memory says that is not where elements lie.
void checkDescriptor(uint64_t bits, TensorPieces &pieces) {
  const uint32_t swizzle = field(bits, 61, 3);
  if (field(bits, 46, 3) != 1 || field(bits, 53, 8))
    pieces.fault =
        format("expected a matrix descriptor of tcgen05 (0b001 in bits 46 to 48, zeros in 53 to 60), but got "
               "{:#x}",
               bits);
  else if (swizzle == 3 || swizzle == 5 || swizzle == 7)
    pieces.fault = format("expected a swizzle mode of 0, 1, 2, 4 or 6 in its matrix descriptor, but got {}", swizzle);
  else if (field(bits, 52, 1))
    pieces.fault = "has a matrix descriptor with an absolute leading dimension, which sm_103a alone has";
  else if (pieces.transposed && (pieces.bytes == 4) != (swizzle == 1))
    pieces.fault =
        format("has an operand of {} bits that is contiguous along M or N, and its swizzle is {}of 128 bytes by "
               "32 bytes",
               8 * pieces.bytes, swizzle == 1 ? "" : "not ");
  else if (swizzle == 1 && !pieces.transposed)
    pieces.fault = "has an operand that is contiguous along K, and its swizzle is of 128 bytes by 32 bytes";
  else if (field(bits, 49, 3)) {
    pieces.unsupported = true;
    pieces.fault = "base offsets other than 0";
  }
}

} // namespace

std::shared_ptr<const TensorPieces> KnownTensorPieces::of(uint64_t descriptor, bool transposed, unsigned bytes,
                                                          uint32_t rows, uint32_t parts) {
  const Key key{descriptor, rows, parts, bytes, transposed};
  if (auto found = known_.find(key); found != known_.end())
    return found->second;
  auto pieces = std::make_shared<TensorPieces>();
  pieces->transposed = transposed;
  pieces->bytes = bytes;
  checkDescriptor(descriptor, *pieces);
  const MatrixDescriptor from = MatrixDescriptor::decodeTensor(descriptor);
  const uint32_t each = 16 / bytes; // elements of a piece
  if (transposed)
    for (uint32_t group = 0; group < (rows + each - 1) / each; ++group)
      for (uint32_t k = 0; k < 2 * each; ++k)
        pieces->begins.push_back(from.alongRows(group, k));
  else
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t part = 0; part < parts; ++part)
        pieces->begins.push_back(from.alongK(row, part));
  pieces->last = *std::ranges::max_element(pieces->begins);
  known_.emplace(key, pieces);
  return pieces;
}

void gatherRows(const TensorPieces &pieces, const std::byte *shared, std::byte *rows) {
  if (!pieces.transposed) {
    for (size_t i = 0; i < pieces.begins.size(); ++i)
      std::memcpy(rows + 16 * i, shared + pieces.begins[i], 16);
    return;
  }
  const size_t bytes = pieces.bytes, each = 16 / bytes;
  for (size_t i = 0; i < pieces.begins.size(); ++i) {
    const size_t group = i / (2 * each), k = i % (2 * each);
    for (size_t j = 0; j < each; ++j)
      std::memcpy(rows + (group * each + j) * 32 + k * bytes, shared + pieces.begins[i] + j * bytes, bytes);
  }
}

} // namespace weft::simulator::machine
