// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Libraries and kernels through weft.hpp, which goes through weft.h.
#include "Samples.h"

#include <weft.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string write(const std::filesystem::path &directory) {
  std::string path = directory / "libadd", ptx80 = weft::samples::vectorAddPTX("sm_80"),
              ptx90 = weft::samples::vectorAddPTX("sm_90a");
  weft_file files[] = {{"add.sm_80.ptx", ptx80.data(), ptx80.size()}, {"add.sm_90a.ptx", ptx90.data(), ptx90.size()}};
  weft::detail::call(weft_library_write, path.c_str(), weft::samples::vectorAddKernels().c_str(),
                     static_cast<const weft_file *>(files), size_t(2));
  return path;
}

weft_status statusOf(const auto &body) {
  try {
    body();
  } catch (const weft::Exception &thrown) {
    EXPECT_STRNE(thrown.what(), "");
    return thrown.status();
  }
  return WEFT_OK;
}

} // namespace

TEST(CAPI, OpenAsk) {
  weft::samples::TemporaryDirectory temporary;
  weft::Library library(write(temporary.path));
  EXPECT_THAT(library.kernels(), ElementsAre("add"));
  EXPECT_THAT(library.arguments("add"), ElementsAre(std::pair("x", "*fp32"), std::pair("y", "*fp32"),
                                                    std::pair("z", "*fp32"), std::pair("n", "i32")));
  auto variants = library.variants("add");
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_STREQ(variants[0].target, "sm_90a");
  EXPECT_EQ(variants[0].registers, -1);
  EXPECT_STREQ(variants[1].file, "add.sm_80.ptx");
  EXPECT_EQ(variants[1].ptx, weft::samples::vectorAddPTX("sm_80"));
  EXPECT_EQ(variants[1].num_warps, 2u);
  EXPECT_EQ(variants[1].registers, 12);
  EXPECT_EQ(variants[1].spill_bytes, 0);
  EXPECT_THAT(library.manifest(), HasSubstr("\"weft-library\""));
  EXPECT_EQ(weft_library_argument_type(library.get(), 0, 4), nullptr);
  EXPECT_EQ(weft_library_argument_count(library.get(), 1), 0u);
  EXPECT_EQ(weft_library_get_variant(library.get(), 0, 2, variants.data(), nullptr), WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(statusOf([&] { library.arguments("sub"); }), WEFT_NOT_FOUND);
}

TEST(CAPI, LaunchFromALibrary) {
  weft::samples::TemporaryDirectory temporary;
  weft::Library library(write(temporary.path));
  std::vector<float> x(1000, 1), y(1000, 2);
  for (const char *name : {"simulator", "simulator:sm_80"}) {
    weft::Device device(name);
    weft::Buffer bx(device, x), by(device, y), bz(device, 4000);
    weft::Stream stream(device);
    library.launch(device, "add", std::nullopt, {bx, by, bz, 1000}, stream);
    device.synchronize(stream);
    EXPECT_EQ(bz.to<float>(stream), std::vector<float>(1000, 3));
    EXPECT_EQ(statusOf([&] { library.launch(device, "add", std::nullopt, {bx, by, bz, 1001}); }), WEFT_FINDING);
    EXPECT_EQ(statusOf([&] { library.launch(device, "add", std::nullopt, {bx, by, bz, 0.5}); }), WEFT_INVALID_ARGUMENT);
    EXPECT_EQ(statusOf([&] { library.launch(device, "add", std::nullopt, {bx, by, bz}); }), WEFT_INVALID_ARGUMENT);
  }
  EXPECT_EQ(statusOf([&] { library.launch(weft::Device("simulator:sm_75"), "add", std::nullopt, {0, 0, 0, 0}); }),
            WEFT_INVALID_ARGUMENT);
  weft::Address none{};
  EXPECT_EQ(
      statusOf([&] { library.launch(weft::Device("simulator:sm_75"), "add", std::nullopt, {none, none, none, 1}); }),
      WEFT_WRONG_TARGET);
}

TEST(CAPI, KernelWithoutALibrary) {
  weft::Device device("simulator");
  weft::Kernel kernel(device, weft::samples::vectorAddPTX(), "add", 0, {"*fp32", "*fp32", "*fp32", "i32"});
  std::vector<float> x(64, 4);
  weft::Buffer bx(device, x), bz(device, 256);
  kernel.launch({1}, {64}, {bx, bx, bz, 64});
  EXPECT_EQ(bz.to<float>(), std::vector<float>(64, 8));
  EXPECT_EQ(kernel.attributes().static_shared_bytes, 0u);
  EXPECT_EQ(statusOf([&] { weft::Kernel(device, "not PTX", "add", 0, {}); }), WEFT_CORRUPT);
  EXPECT_EQ(statusOf([&] { weft::Kernel(device, weft::samples::vectorAddPTX(), "add", 0, {"float*"}); }),
            WEFT_INVALID_ARGUMENT);
}

TEST(CAPI, KernelOfOtherTypesThanItsPTX) {
  weft::Device device("simulator:sm_80");
  auto refusal = [&](const std::vector<std::string> &types) -> std::string {
    try {
      weft::Kernel kernel(device, weft::samples::vectorAddPTX("sm_80"), "add", 0, types);
      return "found";
    } catch (const weft::Exception &error) {
      EXPECT_EQ(error.status(), WEFT_INVALID_ARGUMENT);
      return error.what();
    }
  };
  EXPECT_EQ(refusal({"*fp32", "*fp32", "i64", "u32"}), "found");
  EXPECT_THAT(refusal({"*fp32", "*fp32", "*fp32"}), HasSubstr("expected the 4 parameters"));
  EXPECT_THAT(refusal({"i32", "*fp32", "*fp32", "*fp32"}),
              HasSubstr("expected parameter 0 of the entry 'add' to be 8 "));
}

/// A text with a null character is refused, and not taken for what stands before it.
TEST(CAPI, TextsWithNullCharacters) {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::string>> files{
      {"add.sm_80.ptx", weft::samples::vectorAddPTX("sm_80")},
      {"add.sm_90a.ptx", weft::samples::vectorAddPTX("sm_90a")}};
  weft::Device device("simulator:sm_80");
  weft::Library library("chain", weft::samples::chainProgram(), files);
  auto refused = [](auto &&call) {
    try {
      call();
      return false;
    } catch (const weft::Exception &error) {
      return error.status() == WEFT_INVALID_ARGUMENT && std::string(error.what()).find("null") != std::string::npos;
    }
  };
  EXPECT_TRUE(refused([] { weft::Device("simulator\0:sm_90a"s); }));
  EXPECT_TRUE(refused([] { weft::Library("/tmp\0/x"s); }));
  EXPECT_TRUE(refused([&] { weft::Library("m", weft::samples::chainProgram() + "\0 x"s, files); }));
  EXPECT_TRUE(refused([&] { library.find("add\0x"s); }));
  EXPECT_TRUE(refused([&] { library.launch(device, "add\0x"s, weft::Extent{}, {}); }));
  EXPECT_TRUE(refused([&] { weft::Program(library, device, "chain\0x"s); }));
  EXPECT_TRUE(refused([&] { weft::Kernel(device, files[0].second + "\0x"s, "add", 0, {}); }));
  EXPECT_TRUE(refused([&] { weft::Kernel(device, files[0].second, "add\0x"s, 0, {}); }));
}

/// Arrays of elements that are not there are refused, wherever one is taken.
TEST(CAPI, NullArrays) {
  weft::Device device("simulator:sm_80");
  weft::Library library("chain", weft::samples::chainProgram(),
                        {{"add.sm_80.ptx", weft::samples::vectorAddPTX("sm_80")},
                         {"add.sm_90a.ptx", weft::samples::vectorAddPTX("sm_90a")}});
  weft::Program program(library, device, "chain");
  weft::Kernel kernel(device, weft::samples::vectorAddPTX("sm_80"), "add", 0, {"*fp32", "*fp32", "*fp32", "i32"});
  weft_module *module = nullptr;
  ASSERT_EQ(weft_module_load(device.get(), weft::samples::vectorAddPTX("sm_80").c_str(), &module, nullptr), WEFT_OK);
  weft_extent one{1, 1, 1};
  weft_library *made = nullptr;
  weft_kernel *found = nullptr;
  size_t variant = 0;
  for (weft_status status : {
           weft_library_write("nowhere", "{}", nullptr, 3, nullptr),
           weft_library_make("nowhere", "{}", nullptr, 3, &made, nullptr),
           weft_library_launch(library.get(), device.get(), "add", &one, nullptr, 4, nullptr, nullptr),
           weft_kernel_launch(kernel.get(), one, one, nullptr, nullptr, 4, nullptr, nullptr),
           weft_module_kernel(module, "add", 0, nullptr, 4, &found, nullptr),
           weft_program_choose(program.get(), nullptr, 5, &variant, nullptr),
           weft_program_require(program.get(), nullptr, 5, nullptr, 0, nullptr, nullptr),
           weft_program_run(program.get(), nullptr, 5, nullptr, 1, 0, 0, nullptr, nullptr),
       })
    EXPECT_EQ(status, WEFT_INVALID_ARGUMENT);
  weft_module_close(module);
}

TEST(CAPI, HandlesMove) {
  weft::Device device("simulator");
  weft::Buffer first(device, 16);
  weft_address address = first.address();
  weft::Buffer second(std::move(first));
  EXPECT_EQ(second.address(), address);
  EXPECT_EQ(first.address(), 0u);
  first = weft::Buffer(device, 8);
  EXPECT_EQ(first.bytes(), 8u);
}

TEST(CAPI, Programs) {
  weft::Library library("chain", weft::samples::chainProgram(),
                        {{"add.sm_80.ptx", weft::samples::vectorAddPTX("sm_80")},
                         {"add.sm_90a.ptx", weft::samples::vectorAddPTX("sm_90a")}});
  EXPECT_THAT(library.programs(), ElementsAre("chain"));
  EXPECT_EQ(weft_library_program_name(library.get(), 1), nullptr);
  weft::Device device("simulator");
  weft::Program program(library, device, "chain");
  EXPECT_EQ(program.target(), "sm_80");
  EXPECT_EQ(weft_program_launch_count(program.get()), 4u);
  weft_tensor shaped{};
  shaped.element = WEFT_FP32;
  shaped.rank = 1;
  shaped.shape[0] = 100;
  EXPECT_EQ(program.choose(std::vector<weft_tensor>(5, shaped)), 0u);
  EXPECT_THROW(program.choose({}), weft::Exception);
  auto inputs = program.inputs();
  ASSERT_EQ(inputs.size(), 5u);
  EXPECT_STREQ(inputs[4].name, "e");
  EXPECT_STREQ(inputs[4].dims[0], "N");
  EXPECT_EQ(inputs[4].rank, 1);
  EXPECT_EQ(inputs[4].element, WEFT_FP32);
  EXPECT_STREQ(program.outputs().at(0).name, "sum");

  std::vector<float> ones(1000, 1);
  weft::Buffer a(device, ones), sum(device, 4000);
  std::vector<weft_tensor> given(5, weft::tensor(a, WEFT_FP32, {1000}));
  auto [outputs, bytes] = program.require(given);
  EXPECT_EQ(bytes, 8192u);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].shape[0], 1000);
  outputs[0].address = sum.address();
  weft::Buffer workspace(device, bytes);
  program.run(given, outputs, &workspace);
  EXPECT_EQ(sum.to<float>(), std::vector<float>(1000, 5));

  EXPECT_EQ(statusOf([&] { program.run(given, outputs); }), WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(statusOf([&] { program.run({}, outputs, &workspace); }), WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(statusOf([&] { weft::Program(library, device, "add"); }), WEFT_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { weft::Program(library, weft::Device("simulator:sm_75"), "chain"); }), WEFT_WRONG_TARGET);
  EXPECT_EQ(statusOf([&] { weft::Library("none", weft::samples::chainProgram(), {}); }), WEFT_INVALID_ARGUMENT);
  weft_tensor_info info;
  EXPECT_EQ(weft_program_get_output(program.get(), 1, &info, nullptr), WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(weft_program_require(program.get(), given.data(), 5, outputs.data(), 2, nullptr, nullptr),
            WEFT_INVALID_ARGUMENT);
}

TEST(CAPI, ProgramsOutliveTheirLibraryAndDevice) {
  std::unique_ptr<weft::Program> program;
  {
    weft::Library library("chain", weft::samples::chainProgram(),
                          {{"add.sm_80.ptx", weft::samples::vectorAddPTX("sm_80")},
                           {"add.sm_90a.ptx", weft::samples::vectorAddPTX("sm_90a")}});
    program = std::make_unique<weft::Program>(library, weft::Device("simulator"), "chain");
  }
  EXPECT_STREQ(program->inputs().at(0).name, "a");
  weft_tensor empty = weft_tensor_contiguous(0, WEFT_FP32, 1, std::vector<int64_t>{0}.data());
  program->run(std::vector<weft_tensor>(5, empty), {empty});
}

TEST(CAPI, ElementNames) {
  EXPECT_STREQ(weft_element_name(WEFT_BF16), "bf16");
  EXPECT_STREQ(weft_element_name(-1), "unknown");
  EXPECT_STREQ(weft_element_name(WEFT_FP8E4NV), "fp8e4nv");
  EXPECT_STREQ(weft_element_name(WEFT_FP8E5), "fp8e5");
  EXPECT_STREQ(weft_element_name(9), "unknown");
}
