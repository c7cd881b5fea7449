// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Keeps text on which MLIR's parser would die (TextGuard.h) from the language server, which parses what editors send.
#pragma once

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace weft {

/// A message of the language server protocol as the server may see it. Text of a document that has a hazard becomes
/// blank but for `text_guard.hazard "MESSAGE"` at the hazard's place, which the parser reports there as an error. A file
/// that the server is asked to read (`mlir/convertFromBytecode`) becomes one that is not there. All else stays.
std::string guardMessage(llvm::StringRef message);

/// Adds the dialect `text_guard`, whose one op is that error.
void registerTextGuard(mlir::DialectRegistry &registry);

/// Puts `guardMessage` between the standard input and whoever reads it by `stdin` from now on.
void guardStandardInput();

} // namespace weft
