// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The machine through its C++ face: memory, control flow, order of threads.
#include "runtime/Simulator/Interface/Simulator.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::simulator;

namespace {

std::string kernel(const std::string &body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .f32 %f<9>; .shared .align 8 .b8 s[512];\n"
         "ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n" +
         body + "\nret;\n}\n";
}

/// Runs one block over 64 words and returns them; findings land in `report`.
std::vector<uint32_t> run(const std::string &text, Report &report, uint32_t threads = 32, LaunchOptions options = {}) {
  auto module = Module::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  if (!module)
    return {};
  Memory memory;
  std::vector<uint32_t> words(64);
  auto x = memory.allocate(256);
  EXPECT_TRUE(memory.write(*x, std::as_bytes(std::span(words))));
  uint64_t address = *x;
  auto result = launch(**module, "k", memory, {{1, 1, 1}, {threads, 1, 1}, {}, 0},
                       std::as_bytes(std::span(&address, 1)), options);
  EXPECT_TRUE(result) << result.error().message;
  if (result)
    report = std::move(*result);
  EXPECT_TRUE(memory.read(std::as_writable_bytes(std::span(words)), *x));
  return words;
}

TEST(Machine, LanesThatPartMeetAgain) {
  Report report;
  // Lanes loop as often as their number says; all meet before the vote.
  auto words = run(kernel(R"(
    mov.u32 %r1, 0;
  L: setp.ge.u32 %p1, %r1, %r0; @%p1 bra M; add.u32 %r1, %r1, 1; bra L;
  M: activemask.b32 %r2; st.global.u32 [%d1], %r2;)"),
                   report);
  EXPECT_EQ(words[0], ~0u);
  EXPECT_EQ(words[31], ~0u);
  EXPECT_GT(report.counters.divergentBranches, 30u);
}

TEST(Machine, NestedBranchesAndEarlyExit) {
  Report report;
  auto words = run(kernel(R"(
    and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; and.b32 %r2, %r0, 2; setp.eq.u32 %p2, %r2, 0;
    mov.u32 %r3, 0;
    @%p1 bra A;
    @%p2 bra B; add.u32 %r3, %r3, 1; bra C;
  B: add.u32 %r3, %r3, 2; setp.eq.u32 %p3, %r0, 1; @%p3 exit;
  C: add.u32 %r3, %r3, 4; bra D;
  A: add.u32 %r3, %r3, 8;
  D: bar.warp.sync -1; activemask.b32 %r4; popc.b32 %r4, %r4; shl.b32 %r4, %r4, 8; or.b32 %r3, %r3, %r4;
    st.global.u32 [%d1], %r3;)"),
                   report);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(words[0], 8u | 31 << 8);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(words[3], 5u | 31 << 8);
  EXPECT_EQ(words[5], 6u | 31 << 8);
}

TEST(Machine, LanesWaitForOneAnother) {
  Report report;
  // Lane 0 waits for what lane 1 writes after the branch: only fair turns end this.
  auto words = run(kernel(R"(
    setp.ne.u32 %p1, %r0, 0; @%p1 bra W;
  L: ld.volatile.global.u32 %r1, [%d0+4]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;
    bra E;
  W: mov.u32 %r2, 5; st.volatile.global.u32 [%d1], %r2;
  E: st.volatile.global.u32 [%d1+128], %r0;)"),
                   report);
  EXPECT_EQ(words[32], 0u);
  EXPECT_EQ(words[63], 31u);
}

TEST(Machine, CallsThroughARegister) {
  Report report;
  std::string text = kernel(R"(
    mov.u64 %d2, twice; mov.u64 %d3, negate; setp.lt.u32 %p1, %r0, 16; selp.b64 %d4, %d2, %d3, %p1;
    { .param .b32 a; .param .b32 r; st.param.b32 [a], %r0;
      P: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (r), %d4, (a), P; ld.param.b32 %r1, [r]; }
    st.global.u32 [%d1], %r1;)");
  std::string functions = R"(
    .func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
    .func (.param .b32 r) negate(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; neg.s32 %r1, %r1; st.param.b32 [r], %r1; ret; }
  )";
  text.insert(text.find(".visible"), functions);
  auto words = run(text, report);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(words[5], 10u);
  EXPECT_EQ(words[20], uint32_t(-20));
}

TEST(Machine, NamedBarriersOrderProducersAndConsumers) {
  // Warp 0 produces and arrives; warp 1 waits for it and reads.
  std::string body = R"(
    mov.u32 %r1, s; shl.b32 %r2, %r0, 2; and.b32 %r2, %r2, 127; add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p1, %r0, 32; @%p1 bra A;
    bar.sync 1, 64; ld.shared.u32 %r3, [%r1]; st.global.u32 [%d1], %r3; bra E;
  A: st.shared.u32 [%r1], %r0; bar.arrive 1, 64;
  E:)";
  for (uint64_t seed : {0, 1, 2, 3}) {
    Report report;
    LaunchOptions options;
    options.seed = seed;
    auto words = run(kernel(body), report, 64, options);
    EXPECT_TRUE(report.findings.empty()) << report.findings[0].message;
    EXPECT_EQ(words[40], 8u);
  }
}

TEST(Machine, MbarrierOrdersItsThreads) {
  std::string body = R"(
    mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; add.u32 %r3, %r3, 16; xor.b32 %r4, %r2, 128; add.u32 %r4, %r4, %r1;
    setp.ne.u32 %p1, %r0, 0; @%p1 bra I; mbarrier.init.shared.b64 [%r1], 64;
  I: bar.sync 0;
    st.shared.u32 [%r3], %r0; mbarrier.arrive.shared.b64 %d2, [%r1];
  L: mbarrier.test_wait.shared.b64 %p2, [%r1], %d2; @!%p2 bra L;
    ld.shared.u32 %r5, [%r4+16]; st.global.u32 [%d1], %r5;)";
  for (uint64_t seed : {0, 7}) {
    Report report;
    LaunchOptions options;
    options.seed = seed;
    auto words = run(kernel(body), report, 64, options);
    EXPECT_TRUE(report.findings.empty()) << report.findings[0].message;
    EXPECT_EQ(words[3], 35u);
    EXPECT_EQ(words[63], 31u);
  }
}

TEST(Memory, ChecksItsCallers) {
  Memory memory;
  auto a = memory.allocate(16);
  ASSERT_TRUE(a);
  std::byte bytes[32]{};
  EXPECT_FALSE(memory.write(*a, bytes));
  EXPECT_FALSE(memory.read(bytes, *a + 8));
  EXPECT_FALSE(memory.free(*a + 1));
  EXPECT_TRUE(memory.free(*a));
  EXPECT_TRUE(memory.map(bytes, 32));
  EXPECT_THAT(memory.free(*a).error().message, testing::HasSubstr("freed before"));
  EXPECT_THAT(memory.map(bytes + 8, 4).error().message, testing::HasSubstr("overlaps"));
}

TEST(Memory, FreedMemoryIsKnown) {
  Report report;
  auto module = Module::parse(kernel("ld.global.u32 %r1, [%d1];"));
  ASSERT_TRUE(module);
  Memory memory;
  auto x = memory.allocate(256);
  uint64_t address = *x;
  ASSERT_TRUE(memory.free(*x));
  auto result = launch(**module, "k", memory, {{}, {32, 1, 1}, {}, 0}, std::as_bytes(std::span(&address, 1)));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->findings.size(), 1u);
  EXPECT_EQ(result->findings[0].kind, FindingKind::UseAfterFree);
}

TEST(Memory, UnwrittenGlobalMemoryIsFollowed) {
  auto module = Module::parse(kernel("ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;"));
  ASSERT_TRUE(module);
  Memory memory;
  auto x = memory.allocate(256);
  uint64_t address = *x;
  auto result = launch(**module, "k", memory, {{}, {32, 1, 1}, {}, 0}, std::as_bytes(std::span(&address, 1)));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->findings.size(), 1u);
  EXPECT_EQ(result->findings[0].kind, FindingKind::Uninitialised);
}

} // namespace
