// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Support/Format.h"
#include "targets/Target.h"

namespace weft::simulator {

Module::Module(std::unique_ptr<const machine::Program> program) : program_(std::move(program)) {}
Module::~Module() = default;

Result<Approximations> approximationsNamed(std::string_view text) {
  if (text == "close")
    return Approximations::Close;
  if (text == "loose")
    return Approximations::Loose;
  return failure(StatusCode::InvalidArgument, format("expected approximations 'close' or 'loose', but got '{}'", text));
}

Result<std::shared_ptr<const Module>> Module::parse(std::string_view text, std::string_view name,
                                                    Approximations approximations) {
  auto named = [&](Error error) {
    error.message = format("{}: {}", name, error.message);
    return std::unexpected(std::move(error));
  };
  Result<ptx::Module> syntax = ptx::parseModule(std::string(text));
  if (!syntax)
    return named(std::move(syntax.error()));
  Result<std::unique_ptr<const machine::Program>> program =
      machine::decodeProgram(std::move(*syntax), name, approximations);
  if (!program)
    return named(std::move(program.error()));
  return std::shared_ptr<const Module>(new Module(std::move(*program)));
}

const std::vector<EntryInfo> &Module::entries() const { return program_->entries; }
const std::string &Module::target() const { return program_->target; }

const targets::Target &limitsOf(const Module &module) {
  const targets::Target *known = targets::find(module.target());
  return known ? *known : targets::nearest(targets::capabilityOf(module.target()));
}

const EntryInfo *Module::entry(std::string_view name) const {
  for (const EntryInfo &info : program_->entries)
    if (info.name == name)
      return &info;
  return nullptr;
}

} // namespace weft::simulator
