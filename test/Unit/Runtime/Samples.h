// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A small library that the runtime's tests share: vector addition, one thread an element, with two variants.
#pragma once

#include <array>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace weft::samples {

/// z[i] = x[i] + y[i] for i < n, one element a thread.
inline std::string vectorAddPTX(const std::string &target = "sm_80") {
  return R"(.version 8.0
.target )" +
         target + R"(
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [z];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}
)";
}

/// The manifest's kernels: first a variant for sm_90a that wants n divisible by 16, then one for sm_80 without guards.
inline std::string vectorAddKernels() {
  return R"json({"kernels": [{
    "name": "add",
    "source": {"file": "add.py", "line": 3, "sha256": ""},
    "arguments": [{"name": "x", "type": "*fp32"}, {"name": "y", "type": "*fp32"},
                  {"name": "z", "type": "*fp32"}, {"name": "n", "type": "i32"}],
    "variants": [
      {"target": "sm_90a", "ptx": "add.sm_90a.ptx", "entry": "add", "num_warps": 4, "num_stages": 1, "shared_bytes": 0,
       "constants": {"BLOCK": 128, "CAUSAL": true, "SCALE": 0.5, "DTYPE": "fp32", "BIAS": null},
       "guards": [{"argument": "n", "divisible_by": 16}], "grid": ["cdiv(n, BLOCK)", "1", "1"]},
      {"target": "sm_80", "ptx": "add.sm_80.ptx", "entry": "add", "num_warps": 2, "num_stages": 1, "shared_bytes": 0,
       "constants": {"BLOCK": 64}, "guards": [], "grid": ["cdiv(n, BLOCK)", "1", "1"],
       "resources": {"registers": 12, "spill_store_bytes": 0, "spill_load_bytes": 0, "shared_bytes": 0}}]}]})json";
}

/// Those kernels, and a program `chain` of four launches: sum = (((a + b) + c) + d) + e, all of size N, by the variant
/// for sm_80. Its buffers are tensors 6, 7 and 8, of which the first and the last are never needed at one time.
inline std::string chainProgram() {
  auto tensor = [](const std::string &name) { return R"({"name": ")" + name + R"(", "type": "fp32", "dims": ["N"]})"; };
  auto launch = [](int x, int y, int z) {
    std::string numbers[]{std::to_string(x), std::to_string(y), std::to_string(z)};
    return R"json({"kernel": "add", "grid": ["cdiv(N, 64)", "1", "1"], "writes": [)json" + numbers[2] +
           R"(], "zeroed": [], "arguments": [{"pointer": )" + numbers[0] + R"(}, {"pointer": )" + numbers[1] +
           R"(}, {"pointer": )" + numbers[2] + R"(}, {"size": "N"}]})";
  };
  std::string buffer = R"({"type": "fp32", "dims": ["N"]})";
  std::string kernels = vectorAddKernels();
  kernels.pop_back();
  return kernels + R"(, "programs": [{"name": "chain", "inputs": [)" + tensor("a") + "," + tensor("b") + "," +
         tensor("c") + "," + tensor("d") + "," + tensor("e") + R"(], "outputs": [)" + tensor("sum") +
         R"(], "variants": [{"target": "sm_80", "buffers": [)" + buffer + "," + buffer + "," + buffer +
         R"(], "launches": [)" + launch(0, 1, 6) + "," + launch(6, 2, 7) + "," + launch(7, 3, 8) + "," +
         launch(8, 4, 5) + "]}]}]}";
}

/// What a cubin for sm_`architecture` has of headers, with a byte of code for each entry: as CUDA 12's ptxas lays it out
/// (ELF ABI version 7) or CUDA 13's (8).
inline std::string cubin(int architecture, const std::vector<std::string> &entries, int abiVersion = 8) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> sections(1);
  auto add = [&](const std::string &name, uint32_t type, uint64_t bytes) {
    Elf64_Shdr section{};
    section.sh_name = names.size();
    section.sh_type = type;
    section.sh_offset = sizeof(Elf64_Ehdr);
    section.sh_size = bytes;
    sections.push_back(section);
    names += name + '\0';
  };
  for (const std::string &entry : entries)
    add(".text." + entry, SHT_PROGBITS, 1);
  add(".shstrtab", SHT_STRTAB, 0);
  sections.back().sh_size = names.size();
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_ABIVERSION] = abiVersion;
  header.e_type = ET_EXEC;
  header.e_machine = 190;
  header.e_flags = abiVersion == 7 ? 0x500 | architecture : 0x6000004 | architecture << 8;
  header.e_shoff = sizeof(Elf64_Ehdr) + names.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = sections.size();
  header.e_shstrndx = sections.size() - 1;
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  bytes += names;
  return bytes.append(reinterpret_cast<const char *>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
}

/// `kernels`, a manifest, with the cubins: (file, target, PTX, the PTX's SHA-256).
inline std::string withCubins(std::string kernels, const std::vector<std::array<std::string, 4>> &cubins) {
  kernels.pop_back();
  kernels += R"(, "cubins": [)";
  for (const auto &[file, target, ptx, digest] : cubins)
    kernels += (kernels.back() == '[' ? "" : ",") + (R"({"file": ")" + file + R"(", "target": ")" + target) +
               R"(", "ptx": ")" + ptx + R"(", "ptx_sha256": ")" + digest + R"("})";
  return kernels + "]}";
}

/// A directory of its own for one test, gone at its end.
struct TemporaryDirectory {
  std::filesystem::path path;
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-test.XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
};

} // namespace weft::samples
