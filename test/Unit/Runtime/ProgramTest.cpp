// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs in manifests: what is read, and that a plan which could not be run is refused.
#include "Samples.h"

#include "runtime/Library/Digest.h"
#include "runtime/Library/Json.h"
#include "runtime/Library/Library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::library;
using nlohmann::json;
using testing::HasSubstr;

static const std::vector<File> stubs{{"add.sm_80.ptx", "80"}, {"add.sm_90a.ptx", "90"}};

/// Why the manifest is refused after a change of its program, and of its first plan.
template <typename Change> static std::string refusalOfProgram(Change change) {
  json document = json::parse(*composeManifest(samples::chainProgram(), stubs));
  change(document["programs"][0], document["programs"][0]["variants"][0]);
  document.erase("digest");
  document["digest"] = "sha256:" + sha256(canonicalJson(document));
  Result<Manifest> manifest = parseManifest(document.dump());
  if (manifest)
    return "accepted";
  EXPECT_EQ(manifest.error().code, StatusCode::Corrupt);
  return manifest.error().message;
}

TEST(Program, IsRead) {
  Result<std::string> text = composeManifest(samples::chainProgram(), stubs);
  ASSERT_TRUE(text) << text.error().message;
  Result<Manifest> manifest = parseManifest(*text);
  ASSERT_TRUE(manifest) << manifest.error().message;
  ASSERT_EQ(manifest->programs.size(), 1u);
  const Program &program = manifest->programs[0];
  EXPECT_EQ(program.name, "chain");
  EXPECT_EQ(program.symbols, std::vector<std::string>{"N"});
  ASSERT_EQ(program.inputs.size(), 5u);
  EXPECT_EQ(program.inputs[4].name, "e");
  EXPECT_EQ(program.inputs[4].type.element, Element::FP32);
  EXPECT_EQ(program.outputs[0].type.dims[0].name(), 0u);
  const PlanVariant &plan = program.variants[0];
  EXPECT_EQ(plan.buffers.size(), 3u);
  ASSERT_EQ(plan.launches.size(), 4u);
  EXPECT_EQ(plan.launches[1].variant, 1u) << "the kernel's variant for the plan's own target";
  EXPECT_EQ(plan.launches[1].arguments[0].tensor, 6u);
  EXPECT_EQ(plan.launches[1].writes, std::vector<uint32_t>{7});
  EXPECT_EQ(findProgram(*manifest, "chain"), 0u);
  EXPECT_FALSE(findProgram(*manifest, "add"));
}

TEST(Program, WithoutProgramsAsBefore) {
  EXPECT_TRUE(parseManifest(*composeManifest(samples::vectorAddKernels(), stubs))->programs.empty());
}

/// A second plan after the first, for sizes that the first is not for.
static void addPlan(json &program, json guards) {
  json second = program["variants"][0];
  program["variants"][0]["guards"] = std::move(guards);
  program["variants"].push_back(std::move(second));
}

TEST(Program, GuardsOfPlansAreRead) {
  json document = json::parse(samples::chainProgram());
  addPlan(document["programs"][0],
          {{{"size", "2*N"}, {"at_least", 64}, {"below", 4096}}, {{"size", "N"}, {"below", 9}}});
  Result<Manifest> manifest = parseManifest(*composeManifest(document.dump(), stubs));
  ASSERT_TRUE(manifest) << manifest.error().message;
  const std::vector<PlanVariant> &plans = manifest->programs[0].variants;
  ASSERT_EQ(plans.size(), 2u);
  ASSERT_EQ(plans[0].guards.size(), 2u);
  EXPECT_EQ(plans[0].guards[0].size.text(), "2*N");
  EXPECT_EQ(plans[0].guards[0].atLeast, 64);
  EXPECT_EQ(plans[0].guards[0].below, 4096);
  EXPECT_EQ(plans[0].guards[1].atLeast, std::nullopt);
  EXPECT_TRUE(plans[1].guards.empty());
}

TEST(Program, RefusesGuardsThatLeaveSizesWithoutAPlan) {
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["guards"] = {{{"size", "N"}, {"below", 64}}}; }),
              HasSubstr("variants: expected the last variant for sm_80 to have no guards"));
  EXPECT_THAT(
      refusalOfProgram([](json &program, json &) { program["variants"].push_back(program["variants"][0]); }),
      HasSubstr("variants: variant 1 for sm_80 is never taken: an earlier one without guards serves all sizes"));
  auto guarded = [](json guards) {
    return refusalOfProgram([&](json &program, json &) { addPlan(program, json::array({guards})); });
  };
  EXPECT_EQ(guarded({{"size", "N"}, {"below", 64}}), "accepted");
  EXPECT_THAT(guarded({{"size", "N"}}), HasSubstr("variants[0].guards[0]: expected 'at_least', 'below' or both"));
  EXPECT_THAT(guarded({{"size", "N"}, {"at_least", 64}, {"below", 64}}),
              HasSubstr("guards[0]: no size is at least 64 and below 64"));
  EXPECT_THAT(guarded({{"size", "M"}, {"below", 64}}), HasSubstr("guards[0].size: "));
  EXPECT_THAT(guarded({{"size", "N"}, {"below", "64"}}), HasSubstr("guards[0].below: "));
  EXPECT_THAT(guarded({{"below", 64}}), HasSubstr("guards[0]"));
}

TEST(Program, RefusesWhatDoesNotHoldTogether) {
  auto last = [](json &plan) -> json & { return plan["launches"][3]; };
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["kernel"] = "sub"; }),
              HasSubstr("launches[0].kernel: no kernel is named 'sub'"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["target"] = "sm_86"; }),
              HasSubstr("launches[0].kernel: the kernel 'add' has no variant for sm_86"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["arguments"].erase(3); }),
              HasSubstr("launches[0].arguments: expected 4 arguments for the kernel 'add', but got 3"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["arguments"][3] = {{"real", 1.5}}; }),
              HasSubstr("argument 3 of the kernel 'add' is 'i32', which this does not give"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["arguments"][0] = {{"size", "N"}}; }),
              HasSubstr("argument 0 of the kernel 'add' is '*fp32'"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["arguments"][0] = {{"address", 0}}; }),
              HasSubstr("expected an object with 'pointer', 'stride', 'size' or 'real'"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][0]["type"] = "fp16"; }),
              HasSubstr("argument 0 of the kernel 'add' is '*fp32'"));
  EXPECT_THAT(
      refusalOfProgram([](json &program, json &) { program["inputs"][0]["type"] = "fp64"; }),
      HasSubstr("inputs[0].type: expected i1, i8, i32, i64, fp16, bf16, fp32, fp8e4nv or fp8e5, but got 'fp64'"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["arguments"][3]["size"] = "M"; }),
              HasSubstr("no argument or constant is named 'M'"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["grid"] = {"cdiv(N, ", "1", "1"}; }),
              HasSubstr("launches[0].grid[0]: in the grid expression"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["grid"] = {"1", "1"}; }),
              HasSubstr("launches[0].grid: expected 3 expressions, but got 2"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["outputs"][0]["dims"] = {"2*K"}; }),
              HasSubstr("outputs[0].dims[0]: in the grid expression '2*K', column 4: no argument"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][1]["name"] = "a"; }),
              HasSubstr("programs[0].inputs: two are named 'a'"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][0]["aligned"] = 1; }),
              HasSubstr("inputs[0].aligned: expected true or false"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][0]["starts"] = {"N"}; }),
              HasSubstr("inputs[0].starts: expected starts of packed sequences to be i32 of one axis, but 'a' is fp32 "
                        "with 1 axes"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][0]["starts"] = {"M"}; }),
              HasSubstr("inputs[0].starts[0]: in the grid expression 'M', column 2: no argument"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["inputs"][0]["starts"] = "N"; }),
              HasSubstr("inputs[0].starts: expected an array"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["gradients_of"] = {0, 1}; }),
              HasSubstr("gradients_of: expected one for each of 1 outputs, but got 2"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) {
                program["requires"] = {{{"size", "64*R"}, {"at_least", "N"}, {"what", "a table"}}};
              }),
              HasSubstr("requires[0].size: in the grid expression '64*R', column 5: no argument"));
  EXPECT_THAT(
      refusalOfProgram([](json &program, json &) { program["requires"] = {{{"size", "N"}, {"at_least", "64"}}}; }),
      HasSubstr("requires[0].what"));
  EXPECT_THAT(refusalOfProgram([](json &program, json &) { program["variants"] = json::array(); }),
              HasSubstr("programs[0].variants: expected at least one variant"));
  EXPECT_THAT(refusalOfProgram([&](json &, json &plan) { last(plan)["arguments"][0]["pointer"] = 9; }),
              HasSubstr("arguments[0].pointer: expected an integer from 0 to 8, but got 9"));
  EXPECT_THAT(
      refusalOfProgram([](json &program, json &) { program["inputs"][0]["dims"] = std::vector<std::string>(9, "N"); }),
      HasSubstr("inputs[0].dims: expected at most 8 elements, but got 9"));
}

TEST(Program, RefusesTensorsThatAreNotThereYet) {
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { std::swap(plan["launches"][0], plan["launches"][1]); }),
              HasSubstr("launches[0].arguments: tensor 6 is read before a launch has written it"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"].erase(3); }),
              HasSubstr("launches: no launch writes the output 'sum'"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][1]["writes"] = {6}; }),
              HasSubstr("launches[1].writes[0]: tensor 6 is written by an earlier launch"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["writes"] = {0}; }),
              HasSubstr("launches[0].writes[0]: tensor 0 is an input"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["writes"] = {6, 6}; }),
              HasSubstr("launches[0].writes[1]: tensor 6 stands twice"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["writes"] = {6, 7}; }),
              HasSubstr("tensor 7 is written, but its address is not passed"));
  EXPECT_THAT(refusalOfProgram([](json &, json &plan) { plan["launches"][0]["zeroed"] = {7}; }),
              HasSubstr("launches[0].zeroed[0]: tensor 7 is not among those that the launch writes"));
}

TEST(Program, InMemoryAsOnDisk) {
  const std::vector<File> files{{"add.sm_80.ptx", samples::vectorAddPTX("sm_80")},
                                {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};
  Result<Library> made = makeLibrary("<memory>", samples::chainProgram(), files);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->manifest.programs.size(), 1u);
  EXPECT_EQ(made->parts, (std::vector<std::string>{files[0].bytes, files[1].bytes}));
  Result<Library> broken = makeLibrary("<memory>", samples::chainProgram(), {files[0]});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, StatusCode::InvalidArgument);
  EXPECT_THAT(broken.error().message, HasSubstr("cannot make the library '<memory>': kernels[0].variants[0].ptx"));
}
