# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The lit suite: .mlir files by dialect and pass, run through weft-opt and FileCheck."""

import os
import shutil
import sys

import lit.formats

config.name = "Weft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "Python", "Simulator"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.weft_build_tests

config.environment["PATH"] = os.pathsep.join([config.weft_tools, config.llvm_tools, os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "--dump-input=fail --enable-var-scope"
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%source", config.weft_source))
config.substitutions.append(("%build", config.weft_build))

# A test of what ptxas makes of our PTX says `REQUIRES: ptxas`.
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
