// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LspGuard.h. MLIR's server reads `stdin` itself and has no hook before its parser, so `stdin` becomes a stream whose
// bytes are the messages after they were looked through. It gives out one message at a time: an answer never waits for
// the next message.

#include "compiler/Tools/LspGuard.h"
#include "compiler/Support/TextGuard.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdio>
#include <cstring>

using namespace llvm;

namespace {

constexpr StringLiteral dialectName = "text_guard";

/// Fails to parse, with the message that stands in the text.
mlir::ParseResult parseHazard(mlir::OpAsmParser &parser, mlir::OperationState &) {
  SMLoc place = parser.getNameLoc();
  std::string message;
  if (parser.parseString(&message))
    return mlir::failure();
  // parser.emitError would begin with the op's name, which stands in no text of the user's.
  return mlir::emitError(parser.getEncodedSourceLoc(place), message);
}

class TextGuardDialect : public mlir::Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TextGuardDialect)
  static constexpr StringLiteral getDialectNamespace() { return dialectName; }
  explicit TextGuardDialect(mlir::MLIRContext *context)
      : Dialect(getDialectNamespace(), context, mlir::TypeID::get<TextGuardDialect>()) {}

  std::optional<ParseOpHook> getParseOperationHook(StringRef name) const override {
    return name == "text_guard.hazard" ? std::optional<ParseOpHook>(parseHazard) : std::nullopt;
  }
};

} // namespace

/// A document of nothing but an error where the hazard is; none where the text has no hazard.
static std::optional<std::string> reportInPlaceOf(StringRef text) {
  std::optional<weft::TextHazard> hazard = weft::findTextHazard(text);
  if (!hazard)
    return std::nullopt;
  return std::string(hazard->line - 1, '\n') + std::string(hazard->column - 1, ' ') +
         (dialectName + ".hazard \"" + hazard->message + "\"\n").str();
}

/// The text of `object`'s document, or of a change of it. Whether it was replaced.
static bool guardText(json::Object *object) {
  std::optional<StringRef> text = object ? object->getString("text") : std::nullopt;
  std::optional<std::string> report = text ? reportInPlaceOf(*text) : std::nullopt;
  if (report)
    (*object)["text"] = *report;
  return report.has_value();
}

/// The file that `params` names, which the server would read. Whether another took its place.
static bool guardFile(json::Object &params) {
  lsp::URIForFile uri;
  json::Path::Root root;
  const json::Value *value = params.get("uri");
  if (!value || !fromJSON(*value, uri, root))
    return false;
  auto buffer = MemoryBuffer::getFile(uri.file());
  if (!buffer || !weft::findTextHazard((*buffer)->getBuffer()))
    return false;
  params["uri"] = (*value->getAsString() + ".refused").str();
  return true;
}

std::string weft::guardMessage(StringRef message) {
  Expected<json::Value> value = json::parse(message);
  if (!value) { // the server's to refuse
    consumeError(value.takeError());
    return message.str();
  }
  json::Object *object = value->getAsObject(), *params = object ? object->getObject("params") : nullptr;
  if (!params)
    return message.str();
  bool changed = guardText(params->getObject("textDocument"));
  if (json::Array *changes = params->getArray("contentChanges"))
    for (json::Value &change : *changes)
      changed |= guardText(change.getAsObject());
  if (object->getString("method") == "mlir/convertFromBytecode")
    changed |= guardFile(*params);
  if (!changed)
    return message.str();
  std::string text;
  raw_string_ostream(text) << *value;
  return text;
}

void weft::registerTextGuard(mlir::DialectRegistry &registry) { registry.insert<TextGuardDialect>(); }

namespace {

/// The standard input, message by message.
class GuardedInput {
public:
  explicit GuardedInput(std::FILE *in) : in(in) {}

  /// Bytes of the next message, of which there are some until the end; -1 where reading fails.
  ssize_t read(char *to, size_t room) {
    while (pending.empty() && !input().isEndOfInput()) {
      if (input().hasError())
        return -1;
      std::string message;
      if (succeeded(input().readMessage(message)))
        pending = framed(weft::guardMessage(message));
    }
    size_t count = std::min(room, pending.size());
    std::memcpy(to, pending.data(), count);
    pending.erase(0, count);
    return static_cast<ssize_t>(count);
  }

private:
  /// Messages have headers, which begin with a letter, or (in tests) lines of comments between them.
  lsp::JSONTransportInputOverFile &input() {
    if (!reader) {
      int first = std::getc(in);
      std::ungetc(first, in);
      delimited = first != EOF && !isAlpha(static_cast<char>(first));
      reader.emplace(in, delimited ? lsp::JSONStreamStyle::Delimited : lsp::JSONStreamStyle::Standard);
    }
    return *reader;
  }

  std::string framed(std::string message) const {
    if (delimited)
      return std::move(message) + "\n// -----\n";
    return "Content-Length: " + std::to_string(message.size()) + "\r\n\r\n" + std::move(message);
  }

  std::FILE *in;
  std::optional<lsp::JSONTransportInputOverFile> reader;
  bool delimited = false;
  std::string pending;
};

} // namespace

void weft::guardStandardInput() {
  static GuardedInput input(stdin);
  cookie_io_functions_t functions = {};
  functions.read = [](void *cookie, char *to, size_t room) {
    return static_cast<GuardedInput *>(cookie)->read(to, room);
  };
  if (std::FILE *guarded = fopencookie(&input, "r", functions))
    stdin = guarded;
}
