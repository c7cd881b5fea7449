// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mov, with packing and unpacking; cvta, isspacep (PTX ISA 9.7.9).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Cluster.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

using ptx::Type;

void runMove32(Warp &warp, const Record &record, uint32_t mask) {
  commit(warp.reg<uint32_t>(record.op[0]), warp.reg<const uint32_t>(record.op[1]), mask);
}
/// mov.u16 of a special register: its low half.
void runMoveLow(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *from = warp.reg<const uint32_t>(record.op[1]);
  uint32_t low[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    low[i] = from[i] & 0xffff;
  commit(warp.reg<uint32_t>(record.op[0]), low, mask);
}
void runMove64(Warp &warp, const Record &record, uint32_t mask) {
  commit(warp.reg<uint64_t>(record.op[0]), warp.reg<const uint64_t>(record.op[1]), mask);
}
void runMovePredicate(Warp &warp, const Record &record, uint32_t mask) {
  commitPredicate(warp.predicate(record.op[0]), warp.predicate(record.op[1]), mask);
}
/// mov.pred of a constant: Record::imm.
void runSetPredicate(Warp &warp, const Record &record, uint32_t mask) {
  commitPredicate(warp.predicate(record.op[0]), record.imm ? ~0u : 0u, mask);
}

/// The parts of a value that a vector of registers holds; low part first. wide[0] is the whole for pack, wide[0..n)
/// the parts for unpack. Record::imm: bits of a part; Record::vector: number of parts.
void runPack(Warp &warp, const Record &record, uint32_t mask) {
  unsigned bits = unsigned(record.imm), parts = record.vector;
  bool wide = bits * parts == 64;
  uint64_t values[laneCount] = {};
  for (unsigned part = 0; part < parts; ++part) {
    const uint32_t *from = warp.reg<const uint32_t>(record.wide[1 + part]);
    uint64_t keep = (uint64_t{1} << bits) - 1;
    for (unsigned i = 0; i < laneCount; ++i)
      values[i] |= (from[i] & keep) << (bits * part);
  }
  if (wide)
    return commit(warp.reg<uint64_t>(record.wide[0]), values, mask);
  uint32_t narrow[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    narrow[i] = uint32_t(values[i]);
  commit(warp.reg<uint32_t>(record.wide[0]), narrow, mask);
}

void runUnpack(Warp &warp, const Record &record, uint32_t mask) {
  unsigned bits = unsigned(record.imm), parts = record.vector;
  uint64_t values[laneCount];
  if (bits * parts == 64)
    std::memcpy(values, warp.reg<const uint64_t>(record.wide[parts]), sizeof values);
  else
    for (unsigned i = 0; i < laneCount; ++i)
      values[i] = warp.reg<const uint32_t>(record.wide[parts])[i];
  for (unsigned part = 0; part < parts; ++part) {
    uint32_t results[laneCount];
    uint64_t keep = (uint64_t{1} << bits) - 1;
    for (unsigned i = 0; i < laneCount; ++i)
      results[i] = uint32_t(values[i] >> (bits * part) & keep);
    commit(warp.reg<uint32_t>(record.wide[part]), results, mask);
  }
}

/// mov.b128: wide = both halves of the destination, then of the source.
void runMove128(Warp &warp, const Record &record, uint32_t mask) {
  uint64_t values[2][laneCount]; // both are read before either is written: they may be the same registers
  for (unsigned half = 0; half < 2; ++half)
    std::memcpy(values[half], warp.reg<const uint64_t>(record.wide[2 + half]), sizeof values[half]);
  for (unsigned half = 0; half < 2; ++half)
    commit(warp.reg<uint64_t>(record.wide[half]), values[half], mask);
}

Type partType(Binding &b, const ptx::Operand &vector, Type whole) {
  size_t count = vector.elements.size();
  unsigned bits = count ? ptx::typeBits(whole) / unsigned(count) : 0;
  if ((count != 2 && count != 4) || bits < 8 || bits > 32)
    b.fail(vector, format("expected two or four registers that fill {} bits", ptx::typeBits(whole)));
  return bits == 8 ? Type::B8 : bits == 16 ? Type::B16 : Type::B32;
}

void bindMove(Binding &b) {
  Type type = b.type();
  const ptx::Operand &to = b.operand(0), &from = b.operand(1);
  if (b.operandCount() != 2)
    b.fail("expected a destination and a source");
  if (type == Type::Pred) {
    b.setDestination(0, b.predicateDestination(to));
    if (from.kind == ptx::OperandKind::Integer) {
      b.record.imm = from.bits != 0;
      b.record.run = runSetPredicate;
      return;
    }
    b.record.op[1] = b.truth(from);
    b.record.run = runMovePredicate;
    return;
  }
  if (type == Type::B128) {
    const std::array<Ref, 2> halves = b.decoder.halves(b.frame, to, true), of = b.decoder.halves(b.frame, from, false);
    b.setWide({halves[0], halves[1], of[0], of[1]}, 2);
    b.record.run = runMove128;
    return;
  }
  bool packs = from.kind == ptx::OperandKind::Vector, unpacks = to.kind == ptx::OperandKind::Vector;
  if (packs == unpacks) {
    if (packs)
      b.fail("expected a vector on one side only");
    const bool low = from.kind == ptx::OperandKind::Special && ptx::typeBits(type) == 16;
    b.setDestination(0, b.destination(to, type));
    b.record.op[1] = b.source(from, type);
    b.record.run = ptx::typeBits(type) == 64 ? runMove64 : low ? runMoveLow : runMove32;
    return;
  }
  const ptx::Operand &vector = packs ? from : to;
  Type part = partType(b, vector, type);
  std::vector<Ref> refs;
  if (packs)
    refs.push_back(b.destination(to, type));
  for (const ptx::Operand &element : vector.elements)
    refs.push_back(packs ? b.sourceElement(element, part) : b.destinationElement(element, part));
  if (unpacks)
    refs.push_back(b.source(from, type));
  b.record.vector = uint8_t(vector.elements.size());
  b.record.imm = ptx::typeBits(part);
  b.setWide(std::move(refs), packs ? 1 : vector.elements.size());
  b.record.run = packs ? runPack : runUnpack;
}

/// mov.v4 of a special register of three dimensions: wide = the destinations, then x, y, z, and 0.
void runMoveVector(Warp &warp, const Record &record, uint32_t mask) {
  for (unsigned i = 0; i < 4; ++i)
    commit(warp.reg<uint32_t>(record.wide[i]), warp.reg<const uint32_t>(record.wide[4 + i]), mask);
}

void bindMoveVector(Binding &b) {
  if (b.operandCount() != 2)
    b.fail("expected a vector and a special register");
  const ptx::Operand &to = b.operand(0), &from = b.operand(1);
  if (to.kind != ptx::OperandKind::Vector || to.elements.size() != 4)
    b.fail(to, "expected a vector of 4 registers");
  static constexpr std::string_view names[][4] = {
      {"%tid", "%tid.x", "%tid.y", "%tid.z"},
      {"%ntid", "%ntid.x", "%ntid.y", "%ntid.z"},
      {"%ctaid", "%ctaid.x", "%ctaid.y", "%ctaid.z"},
      {"%nctaid", "%nctaid.x", "%nctaid.y", "%nctaid.z"},
      {"%clusterid", "%clusterid.x", "%clusterid.y", "%clusterid.z"},
      {"%nclusterid", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z"},
      {"%cluster_ctaid", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"},
      {"%cluster_nctaid", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z"},
  };
  const auto *found = std::ranges::find_if(names, [&](const auto &each) { return each[0] == from.text; });
  if (from.kind != ptx::OperandKind::Special || found == std::end(names))
    b.fail(from, format("expected a special register of three dimensions, as '%tid', but got '{}'", from.text));
  std::vector<Ref> refs;
  for (const ptx::Operand &element : to.elements)
    refs.push_back(b.destinationElement(element, b.type()));
  for (unsigned i = 1; i < 4; ++i) {
    ptx::Operand dimension = from;
    dimension.text = (*found)[i];
    refs.push_back(b.sourceElement(dimension, b.type()));
  }
  refs.push_back(b.constant32(0));
  b.setWide(std::move(refs), 4);
  b.record.run = runMoveVector;
}

uint64_t windowOf(std::string_view space) {
  if (space.starts_with("shared"))
    return sharedWindow;
  if (space == "local")
    return localWindow;
  return space.starts_with("param") ? paramWindow : 0;
}

/// Record::imm is the window; addresses of global and constant memory are generic already.
void runToGeneric(Warp &warp, const Record &record, uint32_t mask) {
  const uint64_t *from = warp.reg<const uint64_t>(record.op[1]);
  uint64_t results[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    results[i] = record.imm ? uint64_t(record.imm) | (from[i] & windowOffsetMask) : from[i];
  commit(warp.reg<uint64_t>(record.op[0]), results, mask);
}
void runFromGeneric(Warp &warp, const Record &record, uint32_t mask) {
  const uint64_t *from = warp.reg<const uint64_t>(record.op[1]);
  uint64_t results[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    results[i] = record.imm ? from[i] & windowOffsetMask : from[i];
  commit(warp.reg<uint64_t>(record.op[0]), results, mask);
}

void bindCvta(Binding &b) {
  b.record.imm = int64_t(windowOf(b.modifier("space")));
  b.record.run = b.has("to") ? runFromGeneric : runToGeneric;
}

void runIsSpace(Warp &warp, const Record &record, uint32_t mask) {
  const uint64_t *from = warp.reg<const uint64_t>(record.op[1]);
  // What is another block's, or named as of a rank, is in '.shared::cluster' only.
  const uint64_t elsewhere = record.target ? windowOffsetMask & ~uint64_t{rankOffsetMask} : 0;
  uint32_t bits = 0;
  for (unsigned i = 0; i < laneCount; ++i)
    bits |= uint32_t((from[i] >> windowShift << windowShift) == uint64_t(record.imm) && !(from[i] & elsewhere)) << i;
  commitPredicate(warp.predicate(record.op[0]), bits, mask);
}

void bindIsSpace(Binding &b) {
  b.record.target = b.modifier("space") == "shared" || b.modifier("space") == "shared::cta";
  b.record.imm = int64_t(windowOf(b.modifier("space")));
  b.record.run = b.modifier("space") == "const" ? Executor([](Warp &warp, const Record &record, uint32_t mask) {
    commitPredicate(warp.predicate(record.op[0]), 0, mask);
  })
                                                : runIsSpace;
}

/// There are no textures, samplers and surfaces here, so that nothing is the name of one.
void bindIsType(Binding &b) {
  b.record.run = [](Warp &warp, const Record &record, uint32_t mask) {
    commitPredicate(warp.predicate(record.op[0]), 0, mask);
  };
}

constexpr auto cls = InstructionClass::Move;
#define WEFT_SPACES "space=const|global|local|shared|shared::cta|shared::cluster|param|param::entry"

const Form forms[] = {
    {"mov", "type=b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64|pred", "*", cls, bindMove},
    {"mov", "vec=v4 type=b16|u16|s16|b32|u32|s32", "*", cls, bindMoveVector},
    {"cvta", "to? " WEFT_SPACES " type=u64", "d:u64 s:u64", cls, bindCvta},
    {"istypep", "type=texref|samplerref|surfref", "D s:u64", cls, bindIsType},
    {"isspacep", WEFT_SPACES, "D s:u64", cls, bindIsSpace},
};

} // namespace

std::span<const Form> moveForms() { return forms; }

} // namespace weft::simulator::machine
