// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns evaluated on the host, for whoever wants to see or check them.

#include "compiler/CAPI/Internal.h"

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/Pattern/HostEvaluation.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace weft;

/// The C interface's instance as the compiler's. Operands point into `given`.
static attn::PatternInstance instanceOf(Attribute pattern, const weftc_pattern_instance &given,
                                        SmallVectorImpl<attn::HostOperand> &operands) {
  for (size_t i = 0; i < given.operand_count; ++i) {
    const weftc_pattern_operand &operand = given.operands[i];
    ArrayRef<int64_t> shape(operand.shape, operand.rank);
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    operands.push_back({ArrayRef(operand.values, count), SmallVector<int64_t, 4>(shape)});
  }
  return {pattern,
          given.batches,
          given.heads,
          given.queries,
          given.keys,
          operands,
          ArrayRef(given.masks, given.mask_count)};
}

/// Parses, checks, and then lets `fill` work.
template <typename Fill>
static weftc_status evaluate(weftc_context *context, const weftc_pattern_instance *given, char **error, Fill fill) {
  *error = nullptr;
  auto refuse = [&](StringRef message) {
    *error = capi::copyText(message);
    return WEFTC_INVALID_ARGUMENT;
  };
  size_t before = context->diagnostics.size();
  Attribute pattern = parseAttribute(given->pattern, &context->context);
  if (!pattern) {
    std::string message = context->diagnostics.size() > before ? context->diagnostics[before].message
                                                               : std::string("expected the text of a pattern");
    context->diagnostics.resize(before);
    return refuse(message);
  }
  if (!attn::isPattern(pattern))
    return refuse("expected a pattern, but got '" + std::string(given->pattern) + "'");
  SmallVector<attn::HostOperand> operands;
  attn::PatternInstance instance = instanceOf(pattern, *given, operands);
  if (std::optional<std::string> fault = attn::findFault(instance))
    return refuse(*fault);
  fill(instance);
  return WEFTC_OK;
}

weftc_status weftc_pattern_matrix(weftc_context *context, const weftc_pattern_instance *instance, uint8_t *matrix,
                                  char **error) {
  return evaluate(context, instance, error, [&](const attn::PatternInstance &known) {
    fillMatrix(known, MutableArrayRef(matrix, known.batches * known.heads * known.N * known.M));
  });
}

weftc_status weftc_pattern_summary(weftc_context *context, const weftc_pattern_instance *instance, int64_t block_rows,
                                   int64_t block_columns, uint8_t *summary, char **error) {
  return evaluate(context, instance, error, [&](const attn::PatternInstance &known) {
    int64_t blocks = llvm::divideCeil(known.N, block_rows) * llvm::divideCeil(known.M, block_columns);
    fillSummary(known, block_rows, block_columns, MutableArrayRef(summary, known.batches * known.heads * blocks));
  });
}
