// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/PTX/Syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::simulator::ptx;

namespace {

const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";

Module parse(const std::string &text) {
  Result<Module> module = parseModule(header + text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? std::move(*module) : Module();
}

TEST(Parser, ReadsDeclarations) {
  Module m = parse(R"(
    .file 1 "a.cu"
    .global .align 8 .u64 table[2] = {generic(other), other+4};
    .const .align 4 .f32 half = 0.5;
    .global .b8 text[] = "hi";
    .extern .shared .align 16 .b8 dynamic[];
    .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) .reqntid 128, 2 .minnctapersm 2
    { ret; })");
  EXPECT_EQ(m.files.at(1), "a.cu");
  ASSERT_EQ(m.variables.size(), 4u);
  EXPECT_EQ(m.variables[0].initial[1].symbol, "other");
  EXPECT_EQ(m.variables[0].initial[1].bits, 4u);
  EXPECT_EQ(m.variables[1].initial[0].bits, 0x3f000000u);
  EXPECT_EQ(m.variables[2].count, 3u);
  EXPECT_TRUE(m.variables[3].isExtern);
  const Function *k = m.function("k");
  ASSERT_TRUE(k);
  EXPECT_TRUE(k->isEntry);
  EXPECT_EQ(k->parameterCount, 2u);
  EXPECT_TRUE(k->variables[0].pointer);
  EXPECT_EQ(k->variables[1].size(), 24u);
  EXPECT_THAT(k->requiredBlock, testing::ElementsAre(128, 2, 1));
}

TEST(Parser, ResolvesNamesByScope) {
  Module m = parse(
      R"(.entry k() { .reg .b32 %r<3>, x; mov.b32 x, 1; { .reg .b64 x; mov.b64 x, 2; L: bra L; } L: mov.b32 %r2, x; })");
  const Function &k = m.functions[0];
  ASSERT_EQ(k.body.size(), 4u);
  EXPECT_EQ(k.registers[k.body[0].operands[0].index].type, Type::B32);
  EXPECT_EQ(k.registers[k.body[1].operands[0].index].type, Type::B64);
  EXPECT_EQ(k.labels[k.body[2].operands[0].index].target, 2u);
  EXPECT_EQ(k.body[3].operands[0].index, 2u);
}

TEST(Parser, ReadsOperands) {
  Module m = parse(R"(.entry k() { .reg .pred p, q; .reg .b32 a, b; .reg .b64 d;
    @!p ld.global.v2.b32 {a, b}, [d+-8];
    setp.lt.and.s32 p|q, a, -5, !q;
    mov.f32 a, -0f3F800000;
    mov.u32 a, %tid.x;
    call.uni (a), f, (a, b);
    .loc 1 7 3, function_name L0, inlined_at 1 2 3
    add.s32 a, a, (1 << 4) + 3;
    })");
  const auto &body = m.functions[0].body;
  EXPECT_TRUE(body[0].guardNegated);
  EXPECT_EQ(body[0].operands[0].elements.size(), 2u);
  EXPECT_EQ(body[0].operands[1].elements[0].offset, -8);
  EXPECT_TRUE(body[1].operands[0].paired);
  EXPECT_EQ(int64_t(body[1].operands[3].bits), -5);
  EXPECT_TRUE(body[1].operands[4].negated);
  EXPECT_EQ(body[2].operands[1].bits, 0xbf800000u);
  EXPECT_EQ(body[3].operands[1].text, "%tid.x");
  // What the call takes and gives in registers goes through variables of the parser's own.
  EXPECT_EQ(body[4].spelling(), "st.param.b32");
  EXPECT_EQ(body[5].operands[1].text, "b");
  EXPECT_EQ(body[6].operands[2].elements.size(), 2u);
  EXPECT_EQ(body[6].operands[2].elements[0].kind, OperandKind::Variable);
  EXPECT_EQ(body[7].spelling(), "ld.param.b32");
  EXPECT_EQ(body[7].operands[0].text, "a");
  EXPECT_EQ(body[8].source.line, 7u);
  EXPECT_EQ(body[8].operands[2].bits, 19u);
}

TEST(Parser, ReadsConstantExpressions) {
  Module m = parse(".entry k() { .reg .b64 d; mov.b64 d, -5 / 2 | 1 << 4; mov.b64 d, 1 == 1 ? -9 % 4 : 3; }");
  const auto &body = m.functions[0].body;
  EXPECT_EQ(int64_t(body[0].operands[1].bits), -5 / 2 | 1 << 4);
  EXPECT_EQ(int64_t(body[1].operands[1].bits), -9 % 4);
}

TEST(Parser, ReadsAliases) {
  Module m = parse(".func f() { ret; } .func g(); .alias g, f;");
  EXPECT_EQ(m.function("g"), &m.functions[0]);
}

TEST(Parser, ReadsVectorRegisters) {
  Module m = parse(R"(.entry k() { .reg .v4 .f32 a, b<3>; .reg .v2 .b64 c; .reg .b32 r;
    mov.f32 a.z, b2.r;
    st.global.v4.f32 [r], b1;
    mov.b64 c.y, 1;
    { .reg .b32 a; mov.b32 a, 2; }
    })");
  const Function &k = m.functions[0];
  ASSERT_EQ(k.registers.size(), 4u + 3 * 4 + 2 + 1 + 1);
  EXPECT_EQ(k.body[0].operands[0].index, 2u);
  EXPECT_EQ(k.body[0].operands[1].index, 4u + 2 * 4);
  const Operand &whole = k.body[1].operands[1];
  ASSERT_EQ(whole.kind, OperandKind::Vector);
  ASSERT_EQ(whole.elements.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(whole.elements[i].index, 4u + 4 + i);
  EXPECT_EQ(k.body[2].operands[0].index, 4u + 3 * 4 + 1);
  EXPECT_EQ(k.body[3].operands[0].kind, OperandKind::Register);
}

struct Unparsed {
  const char *text, *message;
};
class ParserRefuses : public testing::TestWithParam<Unparsed> {};

TEST_P(ParserRefuses, WithPlaceAndReason) {
  Result<Module> module = parseModule(header + GetParam().text);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().message, testing::HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    All, ParserRefuses,
    testing::Values(Unparsed{".entry k( { }", "line 4, column 11: expected '.param', but got '{'"},
                    Unparsed{".entry k() { add.s32 ", "but got the end of the text"},
                    Unparsed{".entry k() { .reg .b32 %r<9999999999>; }", "expected at most 1048576 registers"},
                    Unparsed{".entry k() { .reg .v4 .b64 d; }", "at most 128 bits, but got .v4 of .b64"},
                    Unparsed{".entry k() { .reg .v2 .pred p; }", "a vector register of 2 or 4 elements"},
                    Unparsed{".entry k() { .reg .v4 .b32 %r<300000>; }", "expected at most 1048576 registers"},
                    Unparsed{".entry k() { .reg .v2 .b32 d; mov.b32 d.z, 0; }",
                             "line 4, column 40: expected an element of a vector of 2, such as '.x', but got '.z'"},
                    Unparsed{".entry k() { L: L: }", "the label 'L' is defined twice"},
                    Unparsed{".entry k() { @x ret; }", "expected a predicate register as guard, but got 'x'"},
                    Unparsed{".entry k() { } .entry k() { }", "'k' is defined twice"},
                    Unparsed{".global .u32 x = 1/0;", "expected a divisor other than zero"},
                    Unparsed{".global .u32 x[1] = {1, 2};", "expected at most 1 initial values for 'x', but got 2"},
                    Unparsed{".global .align 3 .u32 x;", "expected an alignment that is a power of two"},
                    Unparsed{".global .u32 x[0xffffffffffff];", "at most 4 GiB"},
                    Unparsed{".frobnicate", "expected a directive such as '.entry'"}));

} // namespace
