// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reads of a cubin what tells whether it belongs to a library. Every offset and count in the file is a number that
// somebody may have damaged: each is checked against the file's size before it is followed.
#include "runtime/Library/Cubin.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
#include <tuple>

namespace weft::library {
namespace {

/// ELF's e_machine of NVIDIA's GPUs, which Debian's elf.h lacks.
constexpr uint16_t machineCuda = 190;
/// Where e_flags hold the architecture, by EI_ABIVERSION: CUDA 12's ptxas writes 7, CUDA 13's 8, and 12's writes 8 too
/// for sm_100 and newer (LLVM's BinaryFormat/ELF.h: EF_CUDA_SM, EF_CUDA_SM_MASK, EF_CUDA_ACCELERATORS).
struct FlagLayout {
  unsigned char abiVersion;
  int shift;
  uint32_t accelerators;
};
constexpr FlagLayout layouts[] = {{7, 0, 0x800}, {8, 8, 0x8}};

std::unexpected<Error> refuse(std::string message) { return failure(StatusCode::Corrupt, std::move(message)); }

/// `count` objects at `offset`, where they lie within the file.
template <typename T> std::optional<T> at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// The bytes of a section. One without bytes in the file (SHT_NOBITS) has none.
std::optional<std::string_view> contents(std::string_view bytes, const Elf64_Shdr &section) {
  if (section.sh_type == SHT_NOBITS)
    return std::string_view();
  if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset)
    return std::nullopt;
  return bytes.substr(section.sh_offset, section.sh_size);
}

Result<Elf64_Ehdr> readHeader(std::string_view bytes) {
  std::optional<Elf64_Ehdr> header = at<Elf64_Ehdr>(bytes, 0);
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return refuse("expected a cubin, but got a file that is no ELF file");
  if (!header)
    return refuse(
        weft::format("cut short: expected an ELF header of {} bytes, but got {}", sizeof(Elf64_Ehdr), bytes.size()));
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return refuse("expected a 64-bit little-endian ELF file, but got one of another class or byte order");
  if (header->e_machine != machineCuda)
    return refuse(weft::format("expected machine code for NVIDIA's GPUs, which is ELF machine {}, but got machine {}",
                               machineCuda, header->e_machine));
  if (header->e_type != ET_EXEC)
    return refuse(weft::format("expected a linked cubin, but got an ELF file of type {}", header->e_type));
  return *header;
}

Result<std::vector<std::string>> readEntries(std::string_view bytes, const Elf64_Ehdr &header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    return refuse("expected a table of sections, but the ELF header has none that can be read");
  auto cutShort = [&] { return refuse(weft::format("cut short: its sections reach past its {} bytes", bytes.size())); };
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    if (header.e_shoff > bytes.size())
      return cutShort();
    std::optional<Elf64_Shdr> section = at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || !contents(bytes, *section))
      return cutShort();
    sections.push_back(*section);
  }
  std::string_view names = *contents(bytes, sections[header.e_shstrndx]);
  constexpr std::string_view text = ".text.";
  std::vector<std::string> entries;
  for (const Elf64_Shdr &section : sections) {
    size_t end = section.sh_name < names.size() ? names.find('\0', section.sh_name) : names.npos;
    if (end == names.npos)
      return refuse("expected names of sections, but got one that does not end within the table of names");
    std::string_view name = names.substr(section.sh_name, end - section.sh_name);
    if (section.sh_type == SHT_PROGBITS && section.sh_size > 0 && name.starts_with(text))
      entries.emplace_back(name.substr(text.size()));
  }
  return entries;
}

} // namespace

Result<CubinFacts> readCubin(std::string_view bytes) {
  Result<Elf64_Ehdr> header = readHeader(bytes);
  if (!header)
    return std::unexpected(header.error());
  auto layout = std::ranges::find(layouts, header->e_ident[EI_ABIVERSION], &FlagLayout::abiVersion);
  if (layout == std::end(layouts))
    return refuse(weft::format("expected a cubin of ABI version 7 or 8, but got {}", header->e_ident[EI_ABIVERSION]));
  return readEntries(bytes, *header).transform([&](std::vector<std::string> entries) {
    int architecture = static_cast<int>((header->e_flags >> layout->shift) & 0xff);
    return CubinFacts{architecture, (header->e_flags & layout->accelerators) != 0, std::move(entries)};
  });
}

Status checkCubin(const Manifest &manifest, const Cubin &cubin, std::string_view bytes) {
  Result<CubinFacts> facts = readCubin(bytes);
  if (!facts)
    return std::unexpected(facts.error());
  if (facts->architecture != cubin.target.major * 10 + cubin.target.minor ||
      (facts->accelerated && !cubin.target.suffix))
    return refuse(weft::format("expected machine code for {}, but got some for sm_{}{}",
                               driver::targetName(cubin.target), facts->architecture, facts->accelerated ? "a" : ""));
  for (const Kernel &kernel : manifest.kernels)
    for (const Variant &variant : kernel.variants)
      if (variant.part == cubin.ptx && std::ranges::find(facts->entries, variant.entry) == facts->entries.end())
        return refuse(weft::format("expected the machine code of '{}', but it has no entry '{}'",
                                   manifest.parts[cubin.ptx].file, variant.entry));
  return {};
}

std::vector<size_t> cubinsFor(const Manifest &manifest, uint32_t part, int major, int minor) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < manifest.cubins.size(); ++i) {
    const Cubin &cubin = manifest.cubins[i];
    if (cubin.ptx == part && driver::binaryRunsOn(cubin.target, major, minor))
      fitting.push_back(i);
  }
  // of one number, code for this very architecture comes before code for its family, and that before the plain
  auto nearness = [&](size_t i) {
    const driver::Target &target = manifest.cubins[i].target;
    return std::tuple(target.minor, target.suffix == 'a' ? 2 : target.suffix == 'f' ? 1 : 0);
  };
  std::ranges::sort(fitting, std::ranges::greater(), nearness);
  return fitting;
}

} // namespace weft::library
