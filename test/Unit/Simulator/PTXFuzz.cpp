// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Mutations of real PTX through lexer, parser and decoder: whatever the text, the answer is a module or an error.
// WEFT_FUZZ_COUNT sets how many (100,000 by default), WEFT_TEST_SEED repeats a run.
#include "runtime/Simulator/Simulator.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace weft;

namespace {

std::string readFile(const std::string &name) {
  std::ifstream file(std::string(WEFT_TEST_INPUTS) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A short kernel with most of the grammar, so that many mutations fit into little time.
const char *const grammar = R"(.version 8.0
.target sm_80, debug
.address_size 64
.file 1 "a.cu"
.const .align 4 .b8 c[4] = {1, 2, 0x3, -4};
.global .u64 g = generic(c)+4;
.extern .shared .align 16 .b8 s[];
.func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.s32 %r2, %r1, (1<<4)+3; st.param.b32 [r], %r2; ret; }
.visible .entry k(.param .u64 p, .param .align 8 .b8 q[16]) .reqntid 32, 1, 1
{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<6>; .reg .f32 %f<6>;
  .local .align 8 .b8 l[16];
  ld.param.u64 %d1, [p];
  .loc 1 3 4
  mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 4, %d1;
  setp.lt.and.s32 %p1|%p2, %r1, 5, !%p3;
  @!%p1 bra L;
  { .param .b32 x; st.param.b32 [x], %r1; .param .b32 y; call.uni (y), f, (x); ld.param.b32 %r2, [y]; }
L:
  mov.b64 {%r3, %r4}, %d1; mov.f32 %f1, 0f3F800000; fma.rn.ftz.f32 %f2, %f1, %f1, %f1;
  cvt.rn.f16x2.f32 %r5, %f1, %f2; lop3.b32 %r6, %r5, %r4, %r3, 0x96;
  shfl.sync.bfly.b32 %r7|%p2, %r6, 1, 31, -1;
  cp.async.cg.shared.global [%r1], [%d2], 16, %r6; cp.async.commit_group; cp.async.wait_group 0;
  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r8, %r9, %r10, %r11}, [%r1+16];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r8,%r9,%r10,%r11}, {%r3,%r4}, {%f1,%f2,%f3,%f4};
  T: .branchtargets L, E;
  brx.idx %r1, T;
  atom.global.add.f32 %f5, [%d2], %f1; bar.sync 0;
  @%p2 st.global.v2.b32 [%d2], {%r3, %r4};
E: ret;
}
)";

/// Changes a byte, copies, moves or drops a stretch, or puts a piece of another place in.
std::string mutate(std::string text, std::mt19937_64 &random) {
  auto below = [&](size_t bound) { return bound ? size_t(random() % bound) : 0; };
  for (size_t edits = 1 + below(3); edits-- && !text.empty();) {
    size_t at = below(text.size()), length = 1 + below(std::min<size_t>(24, text.size() - at));
    switch (random() % 6) {
    case 0:
      text[at] = char(random());
      break;
    case 1:
      text[at] = "0123456789.%,;[]{}()@!|-+_$rfbu"[below(31)];
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(below(text.size()), text.substr(at, length));
      break;
    case 4:
      text.replace(at, length, text.substr(below(text.size()), length));
      break;
    case 5:
      text.resize(at);
      break;
    }
  }
  return text;
}

TEST(Fuzz, MutatedTextIsAModuleOrAnError) {
  const char *given = std::getenv("WEFT_TEST_SEED"), *wanted = std::getenv("WEFT_FUZZ_COUNT");
  uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  uint64_t count = wanted ? std::strtoull(wanted, nullptr, 10) : 100'000;
  std::printf("seed %llu (repeat with WEFT_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const std::string texts[] = {grammar, readFile("triton_add.ptx"), readFile("triton_softmax.ptx"),
                               readFile("nvcc_mixed.ptx")};
  for (const std::string &text : texts) {
    auto module = simulator::Module::parse(text);
    ASSERT_TRUE(module) << module.error().message;
  }
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < count; ++i) {
    // The long texts are slower to read: one in fifty.
    const std::string &text = texts[random() % 50 ? 0 : 1 + random() % 3];
    auto module = simulator::Module::parse(mutate(text, random));
    accepted += module.has_value();
    if (!module)
      ASSERT_FALSE(module.error().message.empty());
  }
  EXPECT_GT(accepted, count / 100);
  EXPECT_LT(accepted, count);
}

} // namespace
