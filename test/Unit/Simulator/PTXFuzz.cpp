// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Mutations of real PTX through lexer, parser, decoder and machine: whatever the text, the answer is a module or an
// error, and what is a module runs to a report within a limit of instructions. Under the address and
// undefined-behaviour sanitizers (preset asan) nothing else may happen either.
// WEFT_FUZZ_COUNT sets how many (5,000 by default) and WEFT_FUZZ_FROM the first one, WEFT_TEST_SEED repeats a run.
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Simulator/Machine/State/Program.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
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

/// What sm_90 adds: engines, clusters, tensor maps that a kernel makes, wgmma.
const char *const engines = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 n) .reqntid 128, 1, 1 .reqnctapercluster 2, 1, 1
{
  .reg .pred %p<6>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<6>; .reg .f32 %f<6>;
  .shared .align 1024 .b8 s[4096]; .shared .align 8 .b64 m; .shared .align 8 .b64 o;
  ld.param.u64 %d1, [p]; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; mov.u16 %h1, 3;
  mov.u32 %r4, %cluster_ctarank; xor.b32 %r5, %r4, 1; mapa.shared::cluster.u32 %r6, s, %r5; mapa.shared::cluster.u32 %r7, m, %r5;
  cvta.shared.u64 %d2, s; mapa.u64 %d3, %d2, %r5; getctarank.shared::cluster.u32 %r8, %r6; isspacep.shared::cluster %p2, %d3;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1; @%p1 mbarrier.init.shared::cta.b64 [o], 2; @%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 528;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], 256, [%r2], %h1;
  @%p1 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r6+512], {%r3, %r4}, [%r7];
  @%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+520], %r3, [%r7];
W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0; @!%p3 bra W;
  ld.shared::cluster.u32 %r9, [%r6]; st.shared::cluster.v2.u32 [%r6+1024], {%r9, %r9}; atom.add.relaxed.cluster.shared::cluster.u32 %r10, [%r6+1032], 1;
  @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7]; fence.proxy.async.shared::cta; fence.acq_rel.cluster;
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6+2048], [%r1], 64, [%r7];
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r1], 64; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1+3072], %d1; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1+3072], 0, 16;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1+3072], 128; fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
  @%p1 cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r4}], [o];
  wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d4, %d5, %p2, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  elect.sync %r11|%p4, -1; setmaxnreg.dec.sync.aligned.u32 40; griddepcontrol.wait;
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
  ret;
}
)";

/// What sm_100 adds: tensor memory of two blocks, products, copies and scales there.
const char *const tensors = R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 n) .reqntid 128, 1, 1 .reqnctapercluster 2, 1, 1
{
  .reg .pred %p<6>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .b32 %v<16>;
  .shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 m; .shared .align 4 .b32 a;
  mov.u32 %r1, m; mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r2, 32; mov.u16 %h1, 3; mov.u32 %r10, %cluster_ctarank; setp.eq.and.u32 %p3, %r10, 0, %p1;
  @%p1 mbarrier.init.shared::cta.b64 [%r1], 1; @%p1 fence.mbarrier_init.release.cluster;
  @%p2 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [a], 256; @%p2 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ld.shared.b32 %r3, [a]; and.b32 %r4, %r2, 96; shl.b32 %r4, %r4, 16; add.u32 %r4, %r3, %r4;
  mov.b32 %v0, 1; mov.b32 %v1, 2; mov.b32 %v2, 3; mov.b32 %v3, 4;
  tcgen05.st.sync.aligned.16x128b.x2.unpack::16b.b32 [%r4+16], {%v0, %v1, %v2, %v3}; tcgen05.st.sync.aligned.32x32b.x4.b32 [%r4], {%v0, %v1, %v2, %v3}; tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  mov.b64 %d1, 4611756662049505280; mov.b64 %d2, 4611756662049505536; mov.b32 %r5, 270532624; mov.b32 %r6, 136446976;
  @%p3 tcgen05.mma.cta_group::2.kind::f16 [%r3+32], %d1, %d2, %r5, {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2}, 0, 3;
  @%p3 tcgen05.mma.cta_group::2.kind::f16.collector::a::fill [%r3+32], [%r3], %d2, %r5, 1;
  @%p3 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3+64], %d1; @%p3 tcgen05.cp.cta_group::1.128x256b [%r3+72], %d2;
  @%p3 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%r3+128], %d1, %d2, %r6, [%r3+64], [%r3+68], %p3;
  mov.b32 %r8, 68157456; @%p3 tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::fill [%r3+192], %d1, %d2, %r8, 0, 0; @%p3 tcgen05.cp.cta_group::2.32x128b.warpx4 [%r3+224], %d1;
  @%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0; @!%p4 bra W;
  tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%v4, %v5}, [%r4+32], 8; tcgen05.ld.sync.aligned.16x256b.x1.b32 {%v6, %v7, %v8, %v9}, [%r4+128]; tcgen05.ld.sync.aligned.16x64b.x2.b32 {%v10, %v11}, [%r4];
  add.u32 %v4, %v4, %v5; tcgen05.wait::ld.sync.aligned; and.b32 %r7, %r1, -16777217;
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @%p2 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 256;
  redux.sync.max.abs.NaN.f32 %v0, %v1, -1; redux.sync.min.f32 %v2, %v0, %r7;
  ret;
}
)";

using Random = std::mt19937_64;

size_t below(Random &random, size_t bound) { return bound ? size_t(random() % bound) : 0; }

/// Changes a byte, copies, moves or drops a stretch, or puts a piece of another place in.
void mutateBytes(std::string &text, Random &random) {
  const size_t at = below(random, text.size()), length = 1 + below(random, std::min<size_t>(24, text.size() - at));
  switch (random() % 6) {
  case 0:
    text[at] = char(random());
    break;
  case 1:
    text[at] = "0123456789.%,;[]{}()@!|-+_$rfbu"[random() % 31];
    break;
  case 2:
    text.erase(at, length);
    break;
  case 3:
    text.insert(below(random, text.size()), text.substr(at, length));
    break;
  case 4:
    text.replace(at, length, text.substr(below(random, text.size()), length));
    break;
  case 5:
    text.resize(at);
    break;
  }
}

/// The stretch from behind one ';' to behind the next, at a random place after the header.
std::pair<size_t, size_t> statement(const std::string &text, Random &random) {
  const size_t begin = text.find(';', below(random, text.size()));
  const size_t end = begin == std::string::npos ? begin : text.find(';', begin + 1);
  return end == std::string::npos ? std::pair<size_t, size_t>{0, 0} : std::pair{begin + 1, end - begin};
}

/// A random place of `words` of any of a list, as index into the list and position; npos where there is none.
std::pair<size_t, size_t> findWord(const std::string &text, Random &random, std::initializer_list<const char *> words) {
  const size_t start = below(random, text.size()), turn = below(random, words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t which = (turn + i) % words.size();
    if (size_t at = text.find(words.begin()[which], start); at != std::string::npos)
      return {which, at};
  }
  return {0, std::string::npos};
}

/// Changes that leave the text well formed more often: statements, registers, numbers, types, places.
void mutateWords(std::string &text, Random &random) {
  switch (random() % 7) {
  case 0: { // a statement less
    auto [at, length] = statement(text, random);
    text.erase(at, length);
    break;
  }
  case 1: { // a statement once more, somewhere else
    auto [at, length] = statement(text, random);
    const std::string copy = text.substr(at, length);
    if (auto [to, ignored] = statement(text, random); to)
      text.insert(to, copy);
    break;
  }
  case 2:
  case 3: { // another register of the class
    const std::initializer_list<const char *> classes = {"%r", "%d", "%f", "%p", "%h", "%g"};
    auto [which, at] = findWord(text, random, classes);
    if (at == std::string::npos || at + 2 >= text.size() || !std::isdigit(static_cast<unsigned char>(text[at + 2])))
      break;
    const size_t end = text.find_first_not_of("0123456789", at + 2);
    text.replace(at + 2, (end == std::string::npos ? text.size() : end) - at - 2,
                 std::to_string(below(random, which == 0 ? 20 : 6)));
    break;
  }
  case 4: { // another number
    const size_t at = text.find_first_of("0123456789", below(random, text.size()));
    if (at == std::string::npos || at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])))
      break;
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "7",
                                          "16",
                                          "31",
                                          "32",
                                          "33",
                                          "63",
                                          "64",
                                          "255",
                                          "4096",
                                          "65536",
                                          "2147483647",
                                          "4294967295",
                                          "18446744073709551615",
                                          "-1",
                                          "-4"};
    text.replace(at, end - at, numbers[random() % std::size(numbers)]);
    break;
  }
  case 5: { // another type
    static const std::initializer_list<const char *> types = {".u32", ".s32", ".b32", ".f32", ".b64", ".u64", ".s64",
                                                              ".f64", ".f16", ".u8",  ".b16", ".v2",  ".v4"};
    if (auto [which, at] = findWord(text, random, types); at != std::string::npos)
      text.replace(at, std::strlen(types.begin()[which]), types.begin()[random() % types.size()]);
    break;
  }
  case 6: { // another space, order, or shape
    static const std::initializer_list<const char *> words = {".global",
                                                              ".shared",
                                                              ".local",
                                                              ".volatile",
                                                              ".acquire",
                                                              ".relaxed",
                                                              ".release",
                                                              ".gpu",
                                                              ".cta",
                                                              ".x4",
                                                              ".x2",
                                                              ".add",
                                                              ".cas",
                                                              ".exch",
                                                              ".min",
                                                              ".ca",
                                                              ".cg",
                                                              ".shared::cta",
                                                              ".shared::cluster",
                                                              ".cluster",
                                                              ".arrive",
                                                              ".wait",
                                                              ".aligned",
                                                              ".multicast::cluster"};
    if (auto [which, at] = findWord(text, random, words); at != std::string::npos)
      text.replace(at, std::strlen(words.begin()[which]), random() % 4 ? words.begin()[random() % words.size()] : "");
    break;
  }
  }
}

/// One to three changes of either kind.
std::string mutate(std::string text, Random &random) {
  const bool coarse = random() % 3 == 0;
  for (size_t edits = 1 + random() % 3; edits-- && !text.empty();)
    coarse ? mutateBytes(text, random) : mutateWords(text, random);
  return text;
}

/// What is too big to run thousands of times, though a module may ask for it.
bool isSmall(const simulator::Module &module, const simulator::EntryInfo &entry) {
  uint64_t bytes = uint64_t(entry.localBytes) * 64;
  for (const simulator::machine::ProgramVariable &variable : module.program().variables)
    bytes += variable.size;
  return bytes < (1u << 20);
}

/// Counts of what became of the texts.
struct Outcome {
  uint64_t accepted = 0, ran = 0, clean = 0;
};

/// Runs every entry of a module on memory of its own, with checks, order and workers drawn at random.
void runEntries(const simulator::Module &module, Random &random, Outcome &outcome) {
  for (const simulator::EntryInfo &entry : module.entries()) {
    if (!isSmall(module, entry))
      continue;
    simulator::Memory memory;
    auto x = memory.allocate(4096), y = memory.allocate(64);
    ASSERT_TRUE(x && y && memory.fill(*x, 0, 2048));
    std::vector<uint64_t> words(entry.parameterBytes / 8 + 1, 64);
    words[0] = *x;
    if (words.size() > 2)
      words[1] = *y;
    simulator::LaunchOptions options;
    if (random() % 8 == 0)
      options.checks = simulator::Checks::none();
    options.seed = random() % 2;
    options.threads = 1 + random() % 2;
    options.maximumInstructions = 4000;
    simulator::LaunchShape shape{{2, 1, 1}, {uint32_t(random() % 8 ? 64 : 33), 1, 1}, {}, 256};
    if (entry.requiredBlock.x)
      shape.block = entry.requiredBlock;
    auto report = simulator::launch(module, entry.name, memory, shape, std::as_bytes(std::span(words)), options);
    outcome.ran += report.has_value();
    outcome.clean += report && report->findings.empty();
    if (!report)
      ASSERT_FALSE(report.error().message.empty());
  }
}

TEST(Fuzz, MutatedTextIsAnErrorOrRuns) {
  const char *given = std::getenv("WEFT_TEST_SEED"), *wanted = std::getenv("WEFT_FUZZ_COUNT");
  uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  uint64_t count = wanted ? std::strtoull(wanted, nullptr, 10) : 5'000;
  std::printf("seed %llu (repeat with WEFT_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  const std::string texts[] = {grammar,
                               engines,
                               tensors,
                               readFile("machine.ptx"),
                               readFile("triton_add.ptx"),
                               readFile("triton_softmax.ptx"),
                               readFile("nvcc_mixed.ptx")};
  Random first(seed);
  for (const std::string &text : texts) {
    auto module = simulator::Module::parse(text);
    ASSERT_TRUE(module) << module.error().message;
    Outcome outcome;
    runEntries(**module, first, outcome);
    EXPECT_GT(outcome.ran, 0u);
  }
  Outcome outcome;
  const char *only = std::getenv("WEFT_FUZZ_ONLY"), *from = std::getenv("WEFT_FUZZ_FROM");
  const uint64_t begin = only ? std::strtoull(only, nullptr, 10) : from ? std::strtoull(from, nullptr, 10) : 0;
  for (uint64_t i = begin; i < (only ? begin + 1 : begin + count); ++i) {
    // A generator for each text, so that one can be run again by itself.
    Random random(seed + i * 0x9E3779B97F4A7C15u);
    if (std::getenv("WEFT_FUZZ_TRACE"))
      std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(i));
    // The long texts are slower to read.
    const size_t kind = random() % 16;
    const std::string text = mutate(texts[kind < 4    ? 0
                                          : kind < 8  ? 1
                                          : kind < 12 ? 2
                                          : kind < 14 ? 3
                                                      : 4 + random() % 3],
                                    random);
    if (only)
      std::printf("%s\n", text.c_str());
    auto module = simulator::Module::parse(text);
    if (!module) {
      ASSERT_FALSE(module.error().message.empty()) << "text " << i;
      continue;
    }
    ++outcome.accepted;
    runEntries(**module, random, outcome);
  }
  std::printf("%llu texts: %llu modules, %llu launches, %llu of them without findings\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(outcome.accepted),
              static_cast<unsigned long long>(outcome.ran), static_cast<unsigned long long>(outcome.clean));
  if (!only && count >= 1000) {
    EXPECT_GT(outcome.accepted, count / 5);
    EXPECT_LT(outcome.accepted, count);
    EXPECT_GT(outcome.ran, count / 10);
  }
}

} // namespace
