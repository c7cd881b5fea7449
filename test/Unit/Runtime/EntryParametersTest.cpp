// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where parameters lie among packed ones, beside the simulator's reading of the same PTX.
#include "runtime/Support/EntryParameters.h"
#include "runtime/Simulator/Interface/Simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr std::string_view head = ".version 9.0\n.target sm_90a\n.address_size 64\n";

EntryParameters of(std::string_view entry, std::string_view text) {
  auto found = entryParametersOf(std::string(head) + std::string(text));
  EXPECT_TRUE(found.contains(entry)) << text;
  return found[std::string(entry)];
}

/// As the simulator's own parser has them.
EntryParameters bySimulator(std::string_view entry, std::string_view text) {
  auto module = simulator::Module::parse(std::string(head) + std::string(text));
  EXPECT_TRUE(module) << module.error().message;
  EntryParameters found;
  for (const simulator::ParameterInfo &each : (*module)->entry(std::string(entry))->parameters)
    found.push_back({each.offset, each.size});
  return found;
}

} // namespace

TEST(EntryParameters, AreAtTheirOwnAlignment) {
  std::string_view text = R"(.visible .entry f(
	.param .u64 .ptr .global .align 64 f_param_0, // .align is of what it points to
	.param .b8 f_param_1,
	.param .align 4 .b8 f_param_2[6],
	.param .u32 f_param_3, /* , .param .u64 none */
	.param .align 64 .b8 f_param_4 [128],
	.param .f64 f_param_5,
	.param .u16 f_param_6,
	.param .align 128 .b8 f_param_7[256]
)
.reqntid 128, 1, 1
{ ret; })";
  EXPECT_EQ(of("f", text),
            (EntryParameters{{0, 8}, {8, 1}, {12, 6}, {20, 4}, {64, 128}, {192, 8}, {200, 2}, {256, 256}}));
  EXPECT_EQ(of("f", text), bySimulator("f", text));
}

TEST(EntryParameters, OfSeveralEntries) {
  std::string_view text = R"(// .entry none(.param .u64 x)
.entry a { ret; }
.entry b() { ret; }
.visible .entry c(.param .u32 x,.param .u64 y){ ret; }
.weak .entry d (.param .s8 x) .maxntid 32 { ret; })";
  EXPECT_THAT(of("a", text), IsEmpty());
  EXPECT_THAT(of("b", text), IsEmpty());
  EXPECT_THAT(of("c", text), ElementsAre(EntryParameter{0, 4}, EntryParameter{8, 8}));
  EXPECT_THAT(of("d", text), ElementsAre(EntryParameter{0, 1}));
  EXPECT_EQ(entryParametersOf(text).size(), 4u);
}

TEST(EntryParameters, OfOtherForms) {
  for (std::string_view list : {".param .u64", ".param x", ".param .q7 x", ".param .align 3 .b8 x[4]",
                                ".param .b8 x[n]", ".param .b8 x[4", ".param .align .b8 x", ",", ".param .u24 x"})
    EXPECT_THAT(entryParametersOf(".entry f(" + std::string(list) + ") { ret; }"), IsEmpty()) << list;
  for (std::string_view text : {"", ".entry", ".entry f(", ".entry (", "// .entry f(.param .u64 x) {"})
    EXPECT_LE(entryParametersOf(text).size(), 1u) << text;
}
