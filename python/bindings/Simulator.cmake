# Part of Weft. SPDX-License-Identifier: Apache-2.0
weft_add_python_module(_simulator SOURCES bindings/Simulator.cpp LINK WeftSimulator)
