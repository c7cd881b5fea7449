// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/CAPI/Handles.h"

#include "runtime/Support/Format.h"

using namespace weft;
using namespace weft::capi;

namespace {

const std::vector<library::Program> &programsOf(const weft_library &library) {
  return library.library->manifest.programs;
}

Status describe(const std::vector<library::NamedTensor> &tensors, size_t index, weft_tensor_info *info) {
  if (index >= tensors.size())
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected a number below {}, but got {}", tensors.size(), index));
  const library::NamedTensor &tensor = tensors[index];
  *info = {};
  info->name = tensor.name.c_str();
  info->element = static_cast<int32_t>(tensor.type.element);
  info->rank = static_cast<int32_t>(tensor.type.dims.size());
  info->aligned = tensor.aligned;
  for (size_t axis = 0; axis < tensor.type.dims.size(); ++axis)
    info->dims[axis] = tensor.type.dims[axis].text().c_str();
  return {};
}

} // namespace

extern "C" {

const char *weft_element_name(int element) {
  return library::elementName(static_cast<library::Element>(element)).data(); // every name is a literal
}

size_t weft_library_program_count(const weft_library *library) { return library ? programsOf(*library).size() : 0; }

const char *weft_library_program_name(const weft_library *library, size_t program) {
  return library && program < programsOf(*library).size() ? programsOf(*library)[program].name.c_str() : nullptr;
}

weft_status weft_program_open(weft_library *library, weft_device *device, const char *name, weft_program **program,
                              weft_error **error) {
  if (program)
    *program = nullptr;
  return guarded(error, [&] {
    return needed(library, device, name, program)
        .and_then([&] { return launcherOf(*library, *device)->program(name); })
        .transform([&](std::shared_ptr<const launch::Plan> plan) {
          std::string target = driver::targetName(plan->variant().target);
          *program = new weft_program{std::move(plan), std::move(target)};
        });
  });
}

weft_status weft_program_load(const weft_program *program, weft_error **error) {
  return guarded(error, [&] { return needed(program).and_then([&] { return program->plan->load(); }); });
}

void weft_program_close(weft_program *program) { delete program; }

const char *weft_program_target(const weft_program *program) { return program ? program->target.c_str() : nullptr; }

size_t weft_program_input_count(const weft_program *program) {
  return program ? program->plan->program().inputs.size() : 0;
}

size_t weft_program_output_count(const weft_program *program) {
  return program ? program->plan->program().outputs.size() : 0;
}

size_t weft_program_launch_count(const weft_program *program) {
  return program ? program->plan->variant().launches.size() : 0;
}

weft_status weft_program_get_input(const weft_program *program, size_t input, weft_tensor_info *info,
                                   weft_error **error) {
  return guarded(error, [&] {
    return needed(program, info).and_then([&] { return describe(program->plan->program().inputs, input, info); });
  });
}

weft_status weft_program_get_output(const weft_program *program, size_t output, weft_tensor_info *info,
                                    weft_error **error) {
  return guarded(error, [&] {
    return needed(program, info).and_then([&] { return describe(program->plan->program().outputs, output, info); });
  });
}

weft_status weft_program_choose(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                                size_t *variant, weft_error **error) {
  return guarded(error, [&] {
    return needed(program, variant)
        .and_then([&] { return neededArray(inputs, input_count); })
        .and_then([&] { return program->plan->choose(tensorsOf(inputs, input_count)); })
        .transform([&](size_t chosen) { *variant = chosen; });
  });
}

weft_status weft_program_require(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                                 weft_tensor *outputs, size_t output_count, uint64_t *workspace_bytes,
                                 weft_error **error) {
  return guarded(error, [&] {
    return needed(program)
        .and_then([&] { return neededArray(inputs, input_count); })
        .and_then([&] { return program->plan->require(tensorsOf(inputs, input_count)); })
        .and_then([&](const launch::Requirements &needs) -> Status {
          if (outputs && output_count != needs.outputs.size())
            return failure(StatusCode::InvalidArgument, weft::format("expected room for {} outputs, but got {}",
                                                                     needs.outputs.size(), output_count));
          if (outputs)
            std::copy(needs.outputs.begin(), needs.outputs.end(), reinterpret_cast<launch::Tensor *>(outputs));
          if (workspace_bytes)
            *workspace_bytes = needs.workspaceBytes;
          return {};
        });
  });
}

weft_status weft_program_run(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                             const weft_tensor *outputs, size_t output_count, weft_address workspace,
                             uint64_t workspace_bytes, weft_stream stream, weft_error **error) {
  return guarded(error, [&] {
    return needed(program)
        .and_then([&] { return neededArray(inputs, input_count); })
        .and_then([&] { return neededArray(outputs, output_count); })
        .and_then([&] {
          return program->plan->run(tensorsOf(inputs, input_count), tensorsOf(outputs, output_count),
                                    {workspace, workspace_bytes}, stream);
        });
  });
}

} // extern "C"
