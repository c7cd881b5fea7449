// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.mma (PTX ISA 9.7.16.10), and what else tensor cores do that is refused so far.
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Engines/TensorOperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Tensor/TensorProducts.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

using ptx::Type;

/// Record::aux. op[0]: D; op[1]: A; op[2]: the descriptor of B; op[3]: the instruction descriptor; op[4]:
/// enable-input-d, negated where Record::target says so; op[5]: scales of A; Record::wide: disable-output-lane, the
/// scales of B or, of .ws, zero-column-mask-desc.
struct ProductForm : TensorForm {
  AddressForm d, a, scaleA, scaleB;
  uint32_t masks = 0;    ///< registers of disable-output-lane
  bool hasZeros = false; ///< zero-column-mask-desc
};

void runProduct(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const ProductForm *>(record.aux);
  const uint32_t adds = warp.predicate(record.op[4]) ^ (record.target ? ~0u : 0u);
  eachLane(mask, [&](unsigned lane) {
    TensorOperands operands;
    operands.d = uint32_t(form.d.at(warp, record, lane));
    operands.a = form.aInTensor ? form.a.at(warp, record, lane) : warp.reg<const uint64_t>(record.op[1])[lane];
    operands.b = warp.reg<const uint64_t>(record.op[2])[lane];
    operands.instruction = warp.reg<const uint32_t>(record.op[3])[lane];
    operands.adds = adds >> lane & 1;
    if (form.block) {
      operands.scaleA = uint32_t(form.scaleA.at(warp, record, lane));
      operands.scaleB = warp.reg<const uint32_t>(record.wide[0])[lane] + uint32_t(form.scaleB.offset);
    }
    if (form.hasZeros)
      operands.columnMask = warp.reg<const uint64_t>(record.wide[0])[lane];
    for (uint32_t i = 0; i < form.masks; ++i)
      operands.disabled[i] = warp.reg<const uint32_t>(record.wide[i])[lane];
    issueTensorProduct(warp, lane, form, operands);
  });
}

TensorKind kindNamed(std::string_view name) {
  return name == "kind::f16"        ? TensorKind::F16
         : name == "kind::tf32"     ? TensorKind::TF32
         : name == "kind::i8"       ? TensorKind::I8
         : name == "kind::f8f6f4"   ? TensorKind::F8F6F4
         : name == "kind::mxf8f6f4" ? TensorKind::MXF8F6F4
         : name == "kind::mxf4"     ? TensorKind::MXF4
                                    : TensorKind::MXF4NVF4;
}

/// scale-input-d: 0 to 15, of f16 and tf32.
unsigned scaleOf(Binding &b, const ptx::Operand &operand, TensorKind kind) {
  if (kind != TensorKind::F16 && kind != TensorKind::TF32)
    b.fail(operand, "expected no scale-input-d: '.kind::f16' and '.kind::tf32' alone have it");
  if (operand.kind != ptx::OperandKind::Integer || operand.bits > 15)
    b.fail(operand, format("expected a number from 0 to 15, but got '{}'", operand.text));
  return unsigned(operand.bits);
}

/// The operands that all products begin with: [D], A in tensor memory or its descriptor, B's descriptor, the instruction
/// descriptor.
void bindMatrices(Binding &b, ProductForm &form) {
  form.d = tensorAddress(b, b.operand(0), 0);
  form.aInTensor = b.operand(1).kind == ptx::OperandKind::Address;
  if (form.aInTensor)
    form.a = tensorAddress(b, b.operand(1), 1);
  else
    b.record.op[1] = b.source(b.operand(1), Type::B64);
  b.record.op[2] = b.source(b.operand(2), Type::B64);
  b.record.op[3] = b.source(b.operand(3), Type::B32);
}

void bindProduct(Binding &b) {
  needsTensorMemory(b);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesTensor = true;
  ProductForm form;
  form.kind = kindNamed(b.modifier("kind"));
  form.pair = b.modifier("group") == "cta_group::2";
  bindMatrices(b, form);
  size_t at = 4;
  std::vector<Ref> refs;
  if (b.operand(at).kind == ptx::OperandKind::Vector) {
    form.masks = form.pair ? 8 : 4;
    appendVector(b, b.operand(at++), form.masks, false, refs);
  }
  b.setWide(std::move(refs), 0);
  b.record.target = b.operand(at).negated;
  b.record.op[4] = b.predicate(b.operand(at++));
  if (at < b.operandCount())
    form.scale = scaleOf(b, b.operand(at), form.kind);
  b.site.addressOperand = 0;
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  b.keep(form);
  b.record.run = runProduct;
}

/// Operands: [D], A, B, the instruction descriptor, enable-input-d, zero-column-mask-desc or none.
void bindStationary(Binding &b) {
  needsTensorMemory(b);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesTensor = true;
  ProductForm form;
  form.kind = kindNamed(b.modifier("kind"));
  form.stationary = true;
  bindMatrices(b, form);
  b.record.target = b.operand(4).negated;
  b.record.op[4] = b.predicate(b.operand(4));
  form.hasZeros = b.operandCount() > 5;
  if (form.hasZeros)
    b.setWide({b.source(b.operand(5), Type::B64)}, 0);
  b.site.addressOperand = 0;
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  b.keep(form);
  b.record.run = runProduct;
}

/// Elements that a scale is of (PTX ISA 9.7.16.10.7.1).
unsigned blockOf(Binding &b, TensorKind kind) {
  const std::string_view name = b.modifier("scale");
  const bool known = kind == TensorKind::MXF8F6F4 ? name.empty() || name == "scale_vec::1X" || name == "block32"
                     : kind == TensorKind::MXF4   ? name.empty() || name == "scale_vec::2X" || name == "block32"
                                                  : !name.empty() && name != "scale_vec::1X";
  if (!known)
    b.fail(format("expected another scale vector of '.{}' than '{}'", b.modifier("kind"), name));
  return name == "scale_vec::4X" || name == "block16" ? 16 : 32;
}

/// Operands: [D], A, B, the instruction descriptor, [scales of A], [scales of B], enable-input-d.
void bindScaled(Binding &b) {
  needsTensorMemory(b);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesTensor = true;
  ProductForm form;
  form.kind = kindNamed(b.modifier("kind"));
  form.pair = b.modifier("group") == "cta_group::2";
  form.block = blockOf(b, form.kind);
  bindMatrices(b, form);
  form.scaleB = tensorAddress(b, b.operand(5), 5);
  b.setWide({b.record.op[5]}, 0);
  form.scaleA = tensorAddress(b, b.operand(4), 5);
  b.record.target = b.operand(6).negated;
  b.record.op[4] = b.predicate(b.operand(6));
  b.site.addressOperand = 0;
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  b.keep(form);
  b.record.run = runProduct;
}

/// Record::aux of tcgen05.cp: op[0] where to, op[1] the descriptor.
struct CopyForm : TensorForm {
  AddressForm to;
};

void runCopy(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const CopyForm *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    issueTensorCopy(warp, lane, form, uint32_t(form.to.at(warp, record, lane)),
                    warp.reg<const uint64_t>(record.op[1])[lane]);
  });
}

void bindCopy(Binding &b) {
  needsTensorMemory(b);
  const std::string_view shape = b.modifier("shape"), warps = b.modifier("multicast");
  if (b.has("to") || shape == "4x256b")
    b.unsupported(format("'{}'", b.instruction.spelling()));
  const bool matches = shape == "64x128b" ? warps.starts_with("warpx2") : (shape == "32x128b") == (warps == "warpx4");
  if (!matches || (shape.starts_with("128") && !warps.empty()))
    b.fail(format("expected other warps of '.{}' than '{}'", shape, warps));
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesTensor = true;
  CopyForm form;
  form.pair = b.modifier("group") == "cta_group::2";
  form.parts = shape.ends_with("256b") ? 2 : 1;
  form.copy = shape == "32x128b"         ? TensorCopyShape::Rows32
              : warps == "warpx2::02_13" ? TensorCopyShape::Rows64Apart
              : warps == "warpx2::01_23" ? TensorCopyShape::Rows64Beside
                                         : TensorCopyShape::Rows128;
  form.to = tensorAddress(b, b.operand(0), 0);
  b.record.op[1] = b.source(b.operand(1), Type::B64);
  b.site.addressOperand = 0;
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  b.keep(form);
  b.record.run = runCopy;
}

/// What is PTX and not computed.
void bindRefused(Binding &b) {
  needsTensorMemory(b);
  b.unsupported(format("'{}'", b.instruction.spelling()));
}

constexpr auto matrix = InstructionClass::Matrix, copy = InstructionClass::AsyncCopy;
#define WEFT_GROUP "group=cta_group::1|cta_group::2"
#define WEFT_PLAIN "kind=kind::f16|kind::tf32|kind::f8f6f4|kind::i8"
#define WEFT_SCALED "kind=kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4"
#define WEFT_COLLECTOR "collector=collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard?"
#define WEFT_VECTOR "block_scale scale=scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32?"
#define WEFT_B                                                                                                         \
  "collector=collector::b0::fill|collector::b0::use|collector::b0::lastuse|collector::b0::discard|collector::b1::"     \
  "fill|"                                                                                                              \
  "collector::b1::use|collector::b1::lastuse|collector::b1::discard|collector::b2::fill|collector::b2::use|"           \
  "collector::b2::lastuse|collector::b2::discard|collector::b3::fill|collector::b3::use|collector::b3::lastuse|"       \
  "collector::b3::discard?"
const Form forms[] = {
    {"tcgen05", "mma " WEFT_GROUP " " WEFT_PLAIN " " WEFT_COLLECTOR, "*", matrix, bindProduct},
    {"tcgen05", "mma " WEFT_GROUP " " WEFT_PLAIN " ashift " WEFT_COLLECTOR, "*", matrix, bindRefused},
    {"tcgen05", "mma " WEFT_GROUP " " WEFT_SCALED " " WEFT_VECTOR " " WEFT_COLLECTOR, "*", matrix, bindScaled},
    {"tcgen05", "mma sp " WEFT_GROUP " " WEFT_PLAIN " ashift? " WEFT_COLLECTOR, "*", matrix, bindRefused},
    {"tcgen05", "mma sp " WEFT_GROUP " " WEFT_SCALED " " WEFT_VECTOR " " WEFT_COLLECTOR, "*", matrix, bindRefused},
    {"tcgen05", "mma ws cta_group::1 " WEFT_PLAIN " " WEFT_B, "*", matrix, bindStationary},
    {"tcgen05", "mma ws sp cta_group::1 " WEFT_PLAIN " " WEFT_B, "*", matrix, bindRefused},
    {"tcgen05",
     "cp " WEFT_GROUP " shape=128x256b|4x256b|128x128b|64x128b|32x128b "
     "multicast=warpx2::02_13|warpx2::01_23|warpx4? to=b8x16? from=b6x16_p32|b4x16_p64?",
     "*", copy, bindCopy},
    {"tcgen05", "shift " WEFT_GROUP " down", "*", copy, bindRefused},
};

} // namespace

std::span<const Form> tensorProductForms() { return forms; }

} // namespace weft::simulator::machine
