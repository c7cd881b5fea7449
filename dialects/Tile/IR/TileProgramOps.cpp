// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Printing and inline PTX: verifiers and effects. The constraints C1, C2, ... are those of
// TileProgramOps.td.
#include "dialects/Tile/IR/TileProgramOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::tile;
using llvm::Twine;

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileProgramOps.cpp.inc"

LogicalResult PrintOp::verify() {
  Type element = getValue() ? elementTypeOf(getValue().getType()) : Type();
  if (element && !(element.isInteger(32) || element.isInteger(64) || element.isF32() || element.isF64()))
    return emitOpError() << "expected a value of i32, i64, f32 or f64, but got " << getValue().getType();
  size_t rank = getValue() ? shapeOf(getValue().getType()).size() : 0;
  if (!getFirst().empty() && getFirst().size() != rank)
    return emitOpError() << "expected " << rank << " numbers in 'first', but got " << getFirst().size();
  return success();
}

void PromiseOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands, SetIntRangeFn setResultRanges) {
  setResultRanges(getResult(), operands.front());
}

void InlineAsmOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getPure())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

Speculation::Speculatability InlineAsmOp::getSpeculatability() {
  return getPure() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

unsigned InlineAsmOp::elementsPerOperand(Type type) {
  unsigned bits = elementTypeOf(type).getIntOrFloatBitWidth();
  return bits >= 32 ? 1 : std::min<unsigned>(32 / std::max(bits, 8u), getPack());
}

/// The bits of a register of a class, 0 for one there is not.
static unsigned registerBits(char kind) {
  switch (kind) {
  case 'h':
    return 16;
  case 'r':
  case 'f':
    return 32;
  case 'l':
  case 'd':
    return 64;
  default:
    return 0;
  }
}

FailureOr<SmallVector<InlineAsmOp::Constraint>>
InlineAsmOp::parseConstraints(llvm::function_ref<void(const Twine &)> wrong) {
  SmallVector<Constraint> found;
  SmallVector<StringRef> entries;
  getConstraints().split(entries, ',');
  unsigned results = 0;
  bool clobbers = false;
  for (StringRef entry : entries) {
    entry = entry.trim();
    if (entry.starts_with("~{") && entry.ends_with("}")) {
      clobbers = true;
      continue;
    }
    bool isResult = entry.consume_front("=");
    if (isResult)
      entry.consume_front("&");
    unsigned shared;
    if (clobbers || (isResult && results != found.size())) {
      wrong("expected constraints of results, then of operands, then clobbers, but got '" + getConstraints() + "'");
      return failure();
    }
    if (entry.size() == 1 && registerBits(entry[0])) {
      found.push_back({entry[0], registerBits(entry[0]), isResult});
    } else if (!isResult && (entry == "n" || entry == "i")) {
      found.push_back({entry[0], 64, false}); // an immediate has no register that could be too narrow
    } else if (!isResult && !entry.getAsInteger(10, shared) && shared < results) {
      found.push_back({found[shared].kind, found[shared].bits, false});
    } else {
      wrong("expected a constraint of 'r', 'h', 'l', 'f' or 'd', of '=' and one of these, of 'n' or 'i', or the number "
            "of a result, but got '" +
            (isResult ? "=" + entry : entry) + "'");
      return failure();
    }
    results += isResult;
  }
  return found;
}

/// Whether `code` names operands below `count` alone (C6); says what else it has otherwise.
static bool namesOperands(StringRef code, unsigned count, llvm::function_ref<void(const Twine &)> wrong) {
  while (true) {
    code = code.drop_front(std::min(code.find('$'), code.size()));
    if (code.empty())
      return true;
    StringRef whole = code;
    code = code.drop_front();
    if (code.consume_front("$"))
      continue;
    bool braces = code.consume_front("{");
    StringRef digits = code.take_while(llvm::isDigit);
    code = code.drop_front(digits.size());
    unsigned number = 0;
    bool named = !digits.empty() && !digits.getAsInteger(10, number) && (!braces || code.consume_front("}"));
    if (!named || number >= count) {
      wrong("expected '$' and the number of an operand below " + Twine(count) + " in the code, but got '" +
            whole.take_front(std::max<size_t>(whole.find_first_of(" ,;\n\t"), 2)) + "'");
      return false;
    }
  }
}

LogicalResult InlineAsmOp::verify() {
  auto wrong = [&](const Twine &text) { emitOpError() << text; };
  if (getResults().empty())
    return emitOpError() << "expected at least one result, but got none";
  if (getOperands().empty() && !shapeOf(getResult(0).getType()).empty())
    return emitOpError() << "expected an operand of the results' shape, but got none";
  SmallVector<Type> types(getResultTypes());
  llvm::append_range(types, getOperands().getTypes());
  for (Type type : types) {
    if (shapeOf(type) != shapeOf(types.front()))
      return emitOpError() << "expected operands and results of one shape, but got " << types.front() << " and "
                           << type;
    if (isa<PointerType>(elementTypeOf(type)))
      return emitOpError() << "expected integers and floats, but got " << type;
  }
  if (getPack() > 32 || !llvm::isPowerOf2_32(getPack()))
    return emitOpError() << "expected a number of packed elements that is a power of two up to 32, but got "
                         << getPack();
  FailureOr<SmallVector<Constraint>> constraints = parseConstraints(wrong);
  if (failed(constraints))
    return failure();
  unsigned wanted = 0;
  for (Type type : types)
    wanted += getPack() / elementsPerOperand(type);
  if (wanted != constraints->size())
    return emitOpError() << "expected " << wanted << " constraints, one for each register of results and operands of "
                         << getPack() << " elements, but got " << constraints->size() << " in '" << getConstraints()
                         << "'";
  const Constraint *next = constraints->begin();
  for (auto [index, type] : llvm::enumerate(types)) {
    unsigned each = elementsPerOperand(type);
    unsigned bits = each * std::max(elementTypeOf(type).getIntOrFloatBitWidth(), 8u);
    bool isResult = index < getNumResults();
    for (unsigned i = 0; i < getPack() / each; ++i, ++next) {
      if (next->isImmediate() && !elementTypeOf(type).isInteger())
        return emitOpError() << "expected an integer for the constraint '" << Twine(next->kind) << "', but got "
                             << type;
      if (next->isResult != isResult || next->bits < bits)
        return emitOpError() << "expected a register of at least " << bits << " bits for "
                             << (isResult ? "a result" : "an operand") << " of " << type << ", but got the constraint '"
                             << (next->isResult ? "=" : "") << Twine(next->kind) << "'";
    }
  }
  return success(namesOperands(getCode(), wanted, wrong));
}
