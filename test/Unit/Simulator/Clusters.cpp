// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Clusters through the simulator's C++ face: where blocks lie, what they send each other, and tensor maps field by field.
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Simulator/Interface/TensorMap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::simulator;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string inCluster(const std::string &body, const std::string &attributes = "") {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x) " + attributes +
         "\n{\n.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .shared .align 8 .b8 s[512]; .shared .align 8 .b64 "
         "m;\n"
         "ld.param.u64 %d0, [x]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n"
         "mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mapa.shared::cluster.u32 %r3, s, %r2;\n" +
         body + "\nret;\n}\n";
}

constexpr const char *sync = "barrier.cluster.arrive; barrier.cluster.wait;\n";

/// Runs blocks of one thread in clusters of two, and returns a word for each.
Result<Report> run(const std::string &text, std::vector<uint32_t> &words, Dim3 cluster, LaunchOptions options = {}) {
  auto module = Module::parse(text);
  if (!module)
    return std::unexpected(module.error());
  Memory memory;
  auto x = memory.allocate(words.size() * 4);
  static_cast<void>(memory.write(*x, std::as_bytes(std::span(words))));
  const uint64_t address = *x;
  auto report = launch(**module, "k", memory, {{uint32_t(words.size()), 1, 1}, {1, 1, 1}, cluster, 0},
                       std::as_bytes(std::span(&address, 1)), options);
  static_cast<void>(memory.read(std::as_writable_bytes(std::span(words)), *x));
  return report;
}

TEST(Clusters, BlocksReadEachOthersSharedMemory) {
  for (uint64_t seed : {0, 1, 7}) {
    std::vector<uint32_t> words(6);
    LaunchOptions options;
    options.seed = seed;
    auto report = run(inCluster(std::string("st.shared.u32 [s], %r0;\n") + sync +
                                "ld.shared::cluster.u32 %r4, [%r3]; st.global.u32 [%d1], %r4;\n" + sync),
                      words, {2, 1, 1}, options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->findings.empty()) << report->findings[0].message;
    EXPECT_THAT(words, ElementsAre(1, 0, 3, 2, 5, 4));
    EXPECT_EQ(report->counters.clusterBytesRead, 24u);
  }
}

TEST(Clusters, AKernelMayAskForItsClusters) {
  std::vector<uint32_t> words(4);
  const std::string text = inCluster("mov.u32 %r4, %clusterid.x; st.global.u32 [%d1], %r4;", ".reqnctapercluster 2");
  ASSERT_TRUE(run(text, words, {}));
  EXPECT_THAT(words, ElementsAre(0, 0, 1, 1));
  auto refused = run(text, words, {4, 1, 1});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("requires clusters of 2 x 1 x 1 blocks, but got 4 x 1 x 1"));
}

TEST(Clusters, ABarrierThatABlockNeverComesToIsADeadlock) {
  std::vector<uint32_t> words(2);
  auto report =
      run(inCluster("setp.eq.u32 %p1, %r1, 0; @%p1 bra W; barrier.cluster.arrive; barrier.cluster.wait; ret;\n"
                    "W: ld.volatile.global.u32 %r4, [%d0]; setp.eq.u32 %p2, %r4, 0; @%p2 bra W;"),
          words, {2, 1, 1});
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->findings.empty());
  EXPECT_EQ(report->findings.back().kind, FindingKind::Deadlock);
}

TEST(Clusters, AlignedPhasesComeRoundManyTimes) {
  std::vector<uint32_t> words(4);
  auto report =
      run(inCluster(std::string("mov.u32 %r5, 0; st.shared.u32 [s], %r5; L:\n") + sync +
                    "ld.shared::cluster.u32 %r4, [%r3];\n" + sync +
                    "add.u32 %r4, %r4, 1; st.shared.u32 [s], %r4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 50; "
                    "@%p1 bra L;\n" +
                    sync + "st.global.u32 [%d1], %r4;"),
          words, {4, 1, 1});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty()) << report->findings[0].message;
  EXPECT_THAT(words, ElementsAre(50, 50, 50, 50));
}

TEST(Clusters, OperandsThatMakeNoSenseAreRefused) {
  for (const auto &[text, words] : std::initializer_list<std::pair<const char *, const char *>>{
           {"mapa.shared::cluster.u32 %r4, s;", "a destination, an address and a rank"},
           {"barrier.cluster.wait.release;", "'.acquire'"},
           {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r3], {%r1}, [m];", "2 registers"},
           {"mbarrier.arrive.shared::cluster.b64 %d3, [%r3];", "'_'"},
           {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%d0], 16, [m];",
            ""},
           {"tensormap.replace.tile.rank.global.b1024.b64 [%d0], %d0;", ""},
           {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [s], 64;",
            "128 bytes"},
           {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r3], %r1, [m];", ""}}) {
    std::vector<uint32_t> none(2);
    auto report = run(inCluster(text), none, {2, 1, 1});
    ASSERT_FALSE(report) << text;
    EXPECT_THAT(report.error().message, HasSubstr(words)) << text;
  }
}

TEST(TensorMaps, ZerosAreAnEmptyMapAndOtherBytesNone) {
  std::array<std::byte, 128> bytes{};
  EXPECT_FALSE(decodeTensorMap(bytes));
  auto map = decodeUnfinished(bytes);
  ASSERT_TRUE(map);
  EXPECT_FALSE(check(*map)); // rows of one byte
  map->box[0] = 16;
  EXPECT_TRUE(check(*map));
  EXPECT_EQ(encodeUnchecked(*map), *encode(*map));
  EXPECT_EQ(decodeTensorMap(*encode(*map))->box[0], 16u);
  bytes[5] = std::byte{1};
  EXPECT_FALSE(decodeUnfinished(bytes));
}

} // namespace
