// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Library/Cubin.h"
#include "runtime/Library/Digest.h"
#include "runtime/Library/Library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::library;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::string ptx80 = samples::vectorAddPTX("sm_80"), ptx90 = samples::vectorAddPTX("sm_90a");
using Described = std::array<std::string, 4>;

Described of80(const std::string &file, const std::string &target) {
  return {file, target, "add.sm_80.ptx", sha256(ptx80)};
}

/// Vector addition with these cubins, or why it is refused.
Result<Library> made(const std::vector<Described> &cubins, const std::vector<File> &more) {
  std::vector<File> files{{"add.sm_80.ptx", ptx80}, {"add.sm_90a.ptx", ptx90}};
  files.insert(files.end(), more.begin(), more.end());
  return makeLibrary("add", samples::withCubins(samples::vectorAddKernels(), cubins), files);
}

std::string refusal(const std::vector<Described> &cubins, const std::vector<File> &more) {
  Result<Library> library = made(cubins, more);
  return library ? "accepted" : library.error().message;
}

} // namespace

TEST(Cubin, SaysWhatItIsFor) {
  for (int abiVersion : {7, 8}) {
    Result<CubinFacts> facts = readCubin(samples::cubin(86, {"add", "fault"}, abiVersion));
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(facts->architecture, 86);
    EXPECT_FALSE(facts->accelerated);
    EXPECT_THAT(facts->entries, ElementsAre("add", "fault"));
  }
}

TEST(Cubin, ForeignFilesAreRefused) {
  auto changed = [](size_t at, char value) {
    std::string bytes = samples::cubin(80, {"add"});
    bytes[at] = value;
    Result<CubinFacts> facts = readCubin(bytes);
    return facts ? "accepted" : facts.error().message;
  };
  EXPECT_EQ(readCubin(ptx80).error().message, "expected a cubin, but got a file that is no ELF file");
  EXPECT_EQ(readCubin("").error().code, StatusCode::Corrupt);
  EXPECT_THAT(readCubin("\177ELF").error().message, HasSubstr("cut short: expected an ELF header of 64 bytes"));
  EXPECT_THAT(changed(EI_CLASS, ELFCLASS32), HasSubstr("of another class or byte order"));
  EXPECT_THAT(changed(EI_DATA, ELFDATA2MSB), HasSubstr("of another class or byte order"));
  EXPECT_THAT(changed(18, 62), HasSubstr("expected machine code for NVIDIA's GPUs, which is ELF machine 190, but got"));
  EXPECT_THAT(changed(16, ET_REL), HasSubstr("expected a linked cubin, but got an ELF file of type 1"));
  EXPECT_THAT(changed(EI_ABIVERSION, 9), HasSubstr("expected a cubin of ABI version 7 or 8, but got 9"));
}

TEST(Cubin, LibrariesHoldThemBesideTheirPTX) {
  Result<Library> library = made({of80("add.sm_80.cubin", "sm_80"),
                                  of80("add.sm_86.cubin", "sm_86"),
                                  {"add.sm_90a.cubin", "sm_90a", "add.sm_90a.ptx", sha256(ptx90)}},
                                 {{"add.sm_80.cubin", samples::cubin(80, {"add"})},
                                  {"add.sm_86.cubin", samples::cubin(86, {"add"}, 7)},
                                  {"add.sm_90a.cubin", samples::cubin(90, {"add"})}});
  ASSERT_TRUE(library) << library.error().message;
  const Manifest &manifest = library->manifest;
  EXPECT_THAT(cubinsFor(manifest, 0, 8, 0), ElementsAre(0));
  EXPECT_THAT(cubinsFor(manifest, 0, 8, 6), ElementsAre(1, 0)); // the nearest first
  EXPECT_THAT(cubinsFor(manifest, 0, 8, 9), ElementsAre(1, 0));
  EXPECT_THAT(cubinsFor(manifest, 0, 9, 0), ElementsAre()); // of another major version: the PTX
  EXPECT_THAT(cubinsFor(manifest, 0, 7, 5), ElementsAre());
  EXPECT_THAT(cubinsFor(manifest, 1, 9, 0), ElementsAre(2));
  EXPECT_THAT(cubinsFor(manifest, 1, 9, 1), ElementsAre()); // of one architecture alone
}

TEST(Cubin, StaleOnesAreRefused) {
  Described stale{"add.cubin", "sm_80", "add.sm_80.ptx", sha256(ptx80 + " ")};
  EXPECT_THAT(refusal({stale}, {{"add.cubin", samples::cubin(80, {"add"})}}),
              HasSubstr("cubins[0].ptx_sha256: stale: the cubin was assembled of another PTX than 'add.sm_80.ptx': "
                        "compile the library again"));
  EXPECT_THAT(refusal({of80("add.cubin", "sm_80")}, {{"add.cubin", samples::cubin(80, {"sub"})}}),
              HasSubstr("add.cubin: expected the machine code of 'add.sm_80.ptx', but it has no entry 'add'"));
}

TEST(Cubin, ThoseOfOtherTargetsAreRefused) {
  File file{"add.cubin", samples::cubin(80, {"add"})};
  EXPECT_THAT(refusal({of80("add.cubin", "sm_86")}, {file}),
              HasSubstr("add.cubin: expected machine code for sm_86, but got some for sm_80"));
  EXPECT_THAT(refusal({of80("add.cubin", "sm_75")}, {file}),
              HasSubstr("'add.sm_80.ptx' is PTX for sm_80, which cannot be assembled for sm_75"));
  Described plain{"add.cubin", "sm_90", "add.sm_90a.ptx", sha256(ptx90)};
  EXPECT_THAT(refusal({plain}, {file}), HasSubstr("is PTX for sm_90a, which cannot be assembled for sm_90"));
  std::string marked = samples::cubin(90, {"add"});
  marked[48] |= 0x8; // uses what sm_90 alone has
  EXPECT_THAT(refusal({of80("add.cubin", "sm_90")}, {{"add.cubin", marked}}),
              HasSubstr("expected machine code for sm_90, but got some for sm_90a"));
}

TEST(Cubin, PlacesInTheManifest) {
  File file{"add.cubin", samples::cubin(80, {"add"})};
  EXPECT_THAT(refusal({of80("nowhere.cubin", "sm_80")}, {file}), HasSubstr("no part is named 'nowhere.cubin'"));
  EXPECT_THAT(refusal({of80("add.sm_80.ptx", "sm_80")}, {file}), HasSubstr("'add.sm_80.ptx' is the PTX of 'add'"));
  EXPECT_THAT(refusal({{"add.cubin", "sm_80", "add.cubin", sha256(file.bytes)}}, {file}),
              HasSubstr("'add.cubin' is the PTX of no kernel"));
  EXPECT_THAT(refusal({of80("add.cubin", "sm_80"), of80("add.cubin", "sm_86")}, {file}),
              HasSubstr("cubins[1]: two are of 'add.sm_80.ptx'"));
  EXPECT_THAT(refusal({of80("add.cubin", "sm_80"), of80("b.cubin", "sm_80")}, {file, {"b.cubin", file.bytes}}),
              HasSubstr("cubins[1]: two are of 'add.sm_80.ptx' for sm_80"));
}

/// Every length, every single bit, and 20,000 files with several bytes changed: refused as corrupt with a text, or read
/// as before or as other facts; never a crash or a read outside of the file, which the sanitizers' build would show.
TEST(CubinFuzz, DamagedFilesAreReadOrRefused) {
  const std::string whole = samples::cubin(80, {"add", "fault"});
  auto look = [](const std::string &bytes) {
    std::string exact(bytes); // a heap block of its own size
    exact.shrink_to_fit();
    Result<CubinFacts> facts = readCubin(exact);
    if (!facts) {
      EXPECT_EQ(facts.error().code, StatusCode::Corrupt);
      EXPECT_FALSE(facts.error().message.empty());
    }
    return facts.has_value();
  };
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(look(whole.substr(0, length))) << length;
  size_t read = 0, refused = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ++(look(bytes) ? read : refused);
  }
  uint64_t seed = std::random_device{}();
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + random() % 6; changes--;)
      bytes[random() % bytes.size()] = random() % 3 ? static_cast<char>(random()) : static_cast<char>(0xff);
    ++(look(bytes) ? read : refused);
  }
  EXPECT_GT(read, 0u);
  EXPECT_GT(refused, 0u);
}
