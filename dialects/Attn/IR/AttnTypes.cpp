// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tensor type: spelling, checks, and how sizes relate.
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace weft::attn;

/// Whether a size is printed without quotes: an integer or an identifier.
static bool isPlain(StringRef size) {
  int64_t value;
  if (!size.getAsInteger(10, value))
    return true;
  return !size.empty() && (llvm::isAlpha(size.front()) || size.front() == '_') &&
         llvm::all_of(size, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

Type WholeTensorType::parse(AsmParser &parser) {
  SmallVector<StringAttr> dims;
  MLIRContext *context = parser.getContext();
  auto parseDim = [&]() -> ParseResult {
    std::string text;
    int64_t value;
    OptionalParseResult integer = parser.parseOptionalInteger(value);
    if (integer.has_value()) {
      if (failed(*integer))
        return failure();
      dims.push_back(StringAttr::get(context, std::to_string(value)));
      return success();
    }
    if (failed(parser.parseOptionalKeywordOrString(&text)))
      return parser.emitError(parser.getCurrentLocation(), "expected a size: an integer, a symbol or an expression");
    dims.push_back(StringAttr::get(context, text));
    return success();
  };
  Type element;
  llvm::SMLoc start = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      parser.parseComma() || parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<WholeTensorType>(start, dims, element);
}

void WholeTensorType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](StringAttr dim) {
    if (isPlain(dim.getValue()))
      printer << dim.getValue();
    else
      printer.printString(dim.getValue());
  });
  printer << "], " << getElementType() << '>';
}

LogicalResult WholeTensorType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> dims,
                                      Type element) {
  if (dims.size() > 6)
    return emitError() << "expected at most 6 axes, but got " << dims.size();
  for (StringAttr dim : dims) {
    int64_t value;
    if (dim.empty() || (!dim.getValue().getAsInteger(10, value) && value < 1))
      return emitError() << "expected a size of at least 1, but got " << dim;
  }
  if (element.isSignlessInteger(1) || element.isSignlessInteger(8) || element.isSignlessInteger(32) ||
      element.isSignlessInteger(64) || element.isF16() || element.isBF16() || element.isF32() || isFloat8(element))
    return success();
  return emitError() << "expected elements of i1, i8, i32, i64, f8E4M3FN, f8E5M2, f16, bf16 or f32, but got "
                     << element;
}

bool weft::attn::isFloat8(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

bool weft::attn::hasGradient(WholeTensorType type) {
  return isa<FloatType>(type.getElementType()) && !isFloat8(type.getElementType());
}

LogicalResult weft::attn::detail::checkNoFloat8(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto tensor = dyn_cast<WholeTensorType>(type); tensor && isFloat8(tensor.getElementType()))
      return op->emitOpError() << "expected no elements of 8-bit floats, but got " << type;
  return success();
}

std::optional<int64_t> WholeTensorType::staticDim(unsigned axis) const {
  int64_t value;
  if (dim(axis).getAsInteger(10, value))
    return std::nullopt;
  return value;
}

WholeTensorType WholeTensorType::withElement(Type element) const { return get(getDims(), element); }

WholeTensorType WholeTensorType::withDim(unsigned axis, StringRef size) const {
  SmallVector<StringAttr> dims(getDims());
  dims[axis] = StringAttr::get(getContext(), size);
  return get(dims, getElementType());
}

std::pair<int64_t, StringRef> weft::attn::factorsOf(StringRef size) {
  int64_t factor;
  if (!size.getAsInteger(10, factor))
    return {factor, StringRef()};
  auto [first, rest] = size.split('*');
  if (isPlain(rest.trim()) && !first.trim().getAsInteger(10, factor))
    return {factor, rest.trim()};
  return {1, size};
}

std::optional<int64_t> weft::attn::headGroup(StringRef result, StringRef operand) {
  if (result == operand)
    return 1;
  auto [many, ofMany] = factorsOf(result);
  auto [few, ofFew] = factorsOf(operand);
  return ofMany == ofFew && few > 0 && many % few == 0 ? std::optional(many / few) : std::nullopt;
}

std::string weft::attn::dividedSize(StringRef size, int64_t by) {
  if (by == 1)
    return size.str();
  auto [factor, symbol] = factorsOf(size);
  if (factor % by)
    return "(" + size.str() + ") / " + std::to_string(by);
  if (symbol.empty())
    return std::to_string(factor / by);
  return factor == by ? symbol.str() : std::to_string(factor / by) + "*" + symbol.str();
}

bool weft::attn::broadcastsTo(WholeTensorType from, WholeTensorType to) {
  int64_t shift = to.getRank() - from.getRank();
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    int64_t at = axis + shift;
    if (shift < 0)
      return false;
    bool heads = at == 1 && to.getRank() == 4;
    if (from.dim(axis) != to.dim(at) && from.dim(axis) != "1" && !(heads && headGroup(to.dim(at), from.dim(axis))))
      return false;
  }
  return shift >= 0;
}

Type weft::attn::scalarTypeOf(WholeTensorType type) {
  Builder builder(type.getContext());
  if (isa<FloatType>(type.getElementType()))
    return builder.getF32Type();
  return type.getElementType().isInteger(1) ? builder.getI1Type() : builder.getI32Type();
}
