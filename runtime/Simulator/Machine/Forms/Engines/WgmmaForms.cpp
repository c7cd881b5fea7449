// Part of Weft. SPDX-License-Identifier: Apache-2.0
// wgmma (PTX ISA 9.7.15) and setmaxnreg (9.7.20).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Forms/MatrixOperands.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/Running/Warpgroups.h"
#include "runtime/Simulator/Machine/State/Engines.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Type;

/// The value that all lanes of a mask have; reported where they have several.
uint64_t uniform(Warp &warp, Ref ref, uint32_t mask, const char *what) {
  const uint64_t *values = warp.reg<const uint64_t>(ref);
  const unsigned first = firstLane(mask);
  eachLane(mask, [&](unsigned lane) {
    if (values[lane] != values[first])
      report(warp, FindingKind::WgmmaWarpgroup, lane,
             format("has another {} than lane {}: {:#x} and {:#x}", what, first, values[lane], values[first]));
  });
  return values[first];
}

/// op[0]: descriptor of A, or noRef; op[1]: of B; op[2]: scale-d. Record::target: scale-d negated.
void runMultiply(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const uint32_t adds = warp.predicate(record.op[2]) ^ (record.target ? ~0u : 0u);
  if ((adds & mask) && (~adds & mask))
    report(warp, FindingKind::WgmmaWarpgroup, firstLane(adds & mask), "has another scale-d than other lanes");
  const uint64_t a = record.op[0] == noRef ? 0 : uniform(warp, record.op[0], mask, "descriptor of A");
  issueProduct(warp, record, a, uniform(warp, record.op[1], mask, "descriptor of B"), adds >> firstLane(mask) & 1);
}

void runFence(Warp &warp, const Record &, uint32_t mask) {
  if (gather(warp, mask, warp.live))
    fenceProducts(warp);
}
void runCommit(Warp &warp, const Record &, uint32_t mask) {
  if (gather(warp, mask, warp.live))
    commitProducts(warp);
}
void runWait(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live) || awaitProducts(warp, uint32_t(record.imm)))
    return;
  --warp.worker->executed[warp.here()]; // it will run again
  warp.worker->executedThreads[warp.here()] -= unsigned(__builtin_popcount(mask));
  warp.pc = warp.here(); // until the others of its warpgroup have come to what it waits for
  warp.spun = true;
  warp.stop();
}

/// Record::imm: registers per thread; Record::target: more than before.
void runSetRegisters(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  if (!warp.kernel->launchRegisters)
    return report(warp, FindingKind::RegisterLimit, firstLane(mask),
                  "expected a kernel with '.maxnreg', or with '.minnctapersm' and '.maxntid' or '.reqntid': without, "
                  "ptxas ignores it");
  Engines &engines = *warp.block->engines;
  uint32_t &held = engines.registers[warp.index];
  const auto wanted = uint32_t(record.imm);
  if (record.target ? wanted < held : wanted > held)
    return report(warp, FindingKind::RegisterLimit, firstLane(mask),
                  format("expected at {} {} registers, which a thread has, but got {}",
                         record.target ? "least" : "most", held, wanted));
  if (record.target && engines.freeRegisters < int64_t(wanted - held)) {
    warp.pc = warp.here(); // until others give theirs back
    warp.spun = true;
    return warp.stop();
  }
  engines.freeRegisters += int64_t(held) - int64_t(wanted);
  held = wanted;
  warp.worker->changed = true;
}

/// What a warp's rows and eight columns of the product are, as mma.sync.
sem::MatrixProduct stepOf(Binding &b) {
  sem::MatrixProduct step;
  step.a = matrixType(b.type("a"));
  step.b = matrixType(b.type("b"));
  step.c = step.d = accumulatorType(b.type("d"));
  step.saturate = b.has("satfinite");
  step.bits = sem::BitOperation::AndPopc;
  step.shape = {16, 8, uint16_t(256 / sem::bitsOf(step.a))};
  return step;
}

int64_t immediate(Binding &b, size_t at, int64_t low, int64_t high) {
  const ptx::Operand &operand = b.operand(at);
  const auto value = int64_t(operand.bits);
  if (operand.kind != ptx::OperandKind::Integer || value < low || value > high || (low < 0 && value == 0))
    b.fail(operand, format("expected {} or {}", low, high));
  return value;
}

/// The immediates behind scale-d: signs, then which of A and B lie along M and N.
void bindImmediates(Binding &b, WgmmaForm &form, size_t at) {
  if (form.step.d != sem::AccumulatorType::S32) { // imm-scale-a, imm-scale-b
    form.negated = immediate(b, at, -1, 1) * immediate(b, at + 1, -1, 1) < 0;
    at += 2;
  }
  if (sem::bitsOf(form.step.a) == 16) {
    if (!form.aInRegisters)
      form.aTransposed = immediate(b, at++, 0, 1) != 0;
    form.bTransposed = immediate(b, at, 0, 1) != 0;
  }
}

/// Whether mma.sync, or mma.sp, has the step, and wgmma has types that differ.
bool isStep(const WgmmaForm &form) {
  sem::MatrixProduct stored = form.step;
  stored.shape.k = uint16_t(stored.shape.k >> form.sparse);
  return sem::isMmaProduct(stored) && (stored.a == stored.b || sem::bitsOf(stored.a) == 8);
}

void bindMultiply(Binding &b) {
  needsWarpgroups(b);
  WgmmaForm form;
  form.sparse = b.has("sp");
  form.step = stepOf(b);
  form.step.shape.k = uint16_t(form.step.shape.k << form.sparse);
  form.n = shapeNamed(b.modifier("shape")).n;
  if (!isStep(form))
    b.unsupported(format("'{}'", b.instruction.spelling()));
  form.dCount = form.n / (form.step.d == sem::AccumulatorType::F16 ? 4 : 2);
  form.aInRegisters = b.operand(1).kind == ptx::OperandKind::Vector;
  std::vector<Ref> refs;
  appendRegisters(b, b.operand(0), form.dCount, Type::B32, true, refs);
  if (form.aInRegisters)
    appendRegisters(b, b.operand(1), 4, Type::B32, false, refs);
  else
    b.record.op[0] = b.source(b.operand(1), Type::B64);
  size_t at = 3;
  if (form.sparse) {
    appendRegisters(b, b.operand(at), 1, Type::B32, false, refs);
    form.selector = sparsitySelector(b, b.operand(at + 1), form.step);
    at += 2;
  }
  appendRegisters(b, b.operand(0), form.dCount, Type::B32, false, refs); // they are read too
  b.setWide(std::move(refs), form.dCount);
  b.record.op[1] = b.source(b.operand(2), Type::B64);
  b.record.target = b.operand(at).negated;
  b.record.op[2] = b.predicate(b.operand(at));
  bindImmediates(b, form, at + 1);
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesProducts = true;
  b.keep(form);
  b.record.run = runMultiply;
}

template <Executor run> void bindTo(Binding &b) {
  needsWarpgroups(b);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesProducts = true;
  b.record.run = run;
}

void bindWait(Binding &b) {
  const ptx::Operand &count = b.operand(0);
  if (count.kind != ptx::OperandKind::Integer || count.bits > 7)
    b.fail(count, "expected a number of groups from 0 to 7");
  b.record.imm = int64_t(count.bits);
  bindTo<runWait>(b);
}

void bindSetRegisters(Binding &b) {
  needsHopper(b);
  const ptx::Operand &count = b.operand(0);
  if (count.kind != ptx::OperandKind::Integer || count.bits < 24 || count.bits > 256 || count.bits % 8)
    b.fail(count, "expected a multiple of 8 from 24 to 256");
  b.record.imm = int64_t(count.bits);
  b.record.target = b.modifier("way") == "inc";
  Kernel &kernel = b.decoder.kernel();
  kernel.usesEngines = true;
  if (b.record.target)
    kernel.mostRegisters = std::max(kernel.mostRegisters, uint32_t(count.bits));
  b.record.run = runSetRegisters;
}

/// The forms of wgmma.mma_async whose k is that of 32 bytes of a type: n goes by eights.
std::string shapes(unsigned k) {
  std::string text = "sync aligned shape=";
  for (unsigned n = 8; n <= 256; n += 8)
    text += format("{}m64n{}k{}", n == 8 ? "" : "|", n, k);
  return text;
}

std::vector<Form> makeForms() {
  constexpr auto matrix = InstructionClass::Matrix, other = InstructionClass::Barrier;
  static const std::string texts[] = {"mma_async sp " + shapes(32) + " d=f16|f32 a=f16 b=f16",
                                      "mma_async sp " + shapes(32) + " d=f32 a=bf16 b=bf16",
                                      "mma_async sp " + shapes(16) + " d=f32 a=tf32 b=tf32",
                                      "mma_async sp " + shapes(64) + " d=f16|f32 a=e4m3|e5m2 b=e4m3|e5m2",
                                      "mma_async sp " + shapes(64) + " satfinite? d=s32 a=u8|s8 b=u8|s8",
                                      "mma_async " + shapes(16) + " d=f16|f32 a=f16 b=f16",
                                      "mma_async " + shapes(16) + " d=f32 a=bf16 b=bf16",
                                      "mma_async " + shapes(8) + " d=f32 a=tf32 b=tf32",
                                      "mma_async " + shapes(32) + " d=f16|f32 a=e4m3|e5m2 b=e4m3|e5m2",
                                      "mma_async " + shapes(32) + " satfinite? d=s32 a=u8|s8 b=u8|s8",
                                      "mma_async " + shapes(256) + " d=s32 a=b1 b=b1 and popc"};
  std::vector<Form> forms;
  for (const std::string &text : texts)
    forms.push_back({"wgmma", text, "*", matrix, bindMultiply});
  forms.push_back({"wgmma", "fence sync aligned", "", other, bindTo<runFence>});
  forms.push_back({"wgmma", "commit_group sync aligned", "", other, bindTo<runCommit>});
  forms.push_back({"wgmma", "wait_group sync aligned", "*", other, bindWait});
  forms.push_back({"setmaxnreg", "way=inc|dec sync aligned u32", "*", InstructionClass::Other, bindSetRegisters});
  return forms;
}

} // namespace

std::span<const Form> warpgroupForms() {
  static const std::vector<Form> forms = makeForms();
  return forms;
}

} // namespace weft::simulator::machine
