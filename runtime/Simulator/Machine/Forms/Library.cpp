// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Forms/Library.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace weft::simulator::machine {
namespace {

/// Record::aux: where the arguments and the result lie in the caller's frame, which begins at op[0].
struct LibraryCall {
  std::vector<uint32_t> arguments;
  uint32_t result = 0;
  bool hasResult = false;
};

std::byte *localBytes(Warp &warp, unsigned lane, uint32_t offset) {
  return warp.local.data() + size_t(lane) * warp.kernel->localBytes + offset;
}

uint32_t frameOf(const Warp &warp, const Record &record, unsigned lane) {
  return uint32_t(warp.reg<const uint64_t>(record.op[0])[lane]);
}

template <typename T> T argument(Warp &warp, const Record &record, unsigned lane, size_t index) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  T value;
  std::memcpy(&value, localBytes(warp, lane, frameOf(warp, record, lane) + call.arguments[index]), sizeof(T));
  return value;
}

void writeResult(Warp &warp, const Record &record, unsigned lane, uint64_t value, unsigned bytes) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  if (!call.hasResult)
    return;
  const uint32_t at = frameOf(warp, record, lane) + call.result;
  std::memcpy(localBytes(warp, lane, at), &value, bytes);
  if (!warp.localWritten.empty())
    std::memset(warp.localWritten.data() + size_t(lane) * warp.kernel->localBytes + at, localWritten, bytes);
}

/// The host bytes at a generic address, as far as the memory around it goes.
std::span<const std::byte> bytesAt(Warp &warp, unsigned lane, uint64_t address) {
  uint64_t window = address >> windowShift << windowShift, offset = address & windowOffsetMask;
  if (window == sharedWindow)
    return offset > warp.block->shared.size() ? std::span<const std::byte>()
                                              : std::span<const std::byte>(warp.block->shared).subspan(offset);
  if (window == localWindow)
    return offset > warp.kernel->localBytes
               ? std::span<const std::byte>()
               : std::span<const std::byte>(localBytes(warp, lane, uint32_t(offset)), warp.kernel->localBytes - offset);
  const Allocation *allocation = warp.block->grid->view->find(address, 1);
  if (!allocation)
    return {};
  return {reinterpret_cast<const std::byte *>(address), allocation->end() - address};
}

std::string textAt(Warp &warp, unsigned lane, uint64_t address) {
  std::string text;
  for (std::byte b : bytesAt(warp, lane, address)) {
    if (b == std::byte{0})
      break;
    text += char(b);
  }
  return text;
}

/// A text in a field of the flags, width and precision of a conversion.
std::string inField(const std::string &plain, std::string text) {
  size_t point = plain.find('.'), start = std::min(plain.find_first_not_of("%-+ #0"), plain.size());
  if (point != std::string::npos)
    text.resize(std::min(text.size(), size_t(std::strtoul(plain.c_str() + point + 1, nullptr, 10))));
  size_t width = std::min<size_t>(std::strtoul(plain.c_str() + start, nullptr, 10), 4096);
  if (text.size() < width)
    text.insert(plain.find('-') < start ? text.size() : 0, width - text.size(), ' ');
  return text;
}

/// What `h` and `hh` leave of an integer.
int64_t shortened(const std::string &spec, int64_t value, bool isSigned) {
  const auto count = std::count(spec.begin(), spec.end(), 'h');
  if (count == 0)
    return value;
  if (isSigned)
    return count == 1 ? int64_t(int16_t(value)) : int64_t(int8_t(value));
  return count == 1 ? int64_t(uint16_t(value)) : int64_t(uint8_t(value));
}

/// One conversion of a printf format, with its value taken from the arguments' buffer.
std::string formatOne(Warp &warp, unsigned lane, std::string spec, std::span<const std::byte> &values, size_t &at) {
  auto take = [&](size_t bytes) {
    uint64_t value = 0;
    at = (at + bytes - 1) / bytes * bytes;
    if (at + bytes <= values.size())
      std::memcpy(&value, values.data() + at, bytes);
    at += bytes;
    return value;
  };
  char kind = spec.back();
  bool isLong =
      spec.find('l') != std::string::npos || spec.find('z') != std::string::npos || spec.find('j') != std::string::npos;
  std::string plain;
  for (char c : spec.substr(0, spec.size() - 1))
    if (!std::string_view("hlzjtL").contains(c)) {
      if (c == '*')
        plain += std::to_string(int32_t(take(4)));
      else
        plain += c;
    }
  if (plain.size() > 24 || plain.find_first_not_of("%-+ #.0123456789") != std::string::npos)
    return spec;
  char buffer[512] = {};
  switch (kind) {
  case 'd':
  case 'i': {
    int64_t value = isLong ? int64_t(take(8)) : shortened(spec, int32_t(take(4)), true);
    std::snprintf(buffer, sizeof buffer, (plain + "lld").c_str(), static_cast<long long>(value));
    return buffer;
  }
  case 'u':
  case 'x':
  case 'X':
  case 'o':
    std::snprintf(buffer, sizeof buffer, (plain + "ll" + kind).c_str(),
                  static_cast<unsigned long long>(isLong ? take(8) : shortened(spec, int64_t(take(4)), false)));
    return buffer;
  case 'c':
    return inField(plain, std::string(1, char(take(4))));
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G':
  case 'a':
  case 'A':
    std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(), std::bit_cast<double>(take(8)));
    return buffer;
  case 'p':
    return inField(plain, format("{:#x}", take(8)));
  case 's':
    return inField(plain, textAt(warp, lane, take(8)));
  default:
    return spec;
  }
}

void runPrint(Warp &warp, const Record &record, uint32_t mask) {
  std::string &output = warp.worker->output[warp.block->index];
  warp.worker->changed = true;
  eachLane(mask, [&](unsigned lane) {
    std::string pattern = textAt(warp, lane, argument<uint64_t>(warp, record, lane, 0));
    std::span<const std::byte> values = bytesAt(warp, lane, argument<uint64_t>(warp, record, lane, 1));
    size_t at = 0;
    for (size_t i = 0; i < pattern.size() && output.size() < (64u << 20); ++i) {
      if (pattern[i] != '%') {
        output += pattern[i];
      } else if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
        output += '%';
        ++i;
      } else {
        size_t end = pattern.find_first_of("diuxXocsfFeEgGaAp", i + 1);
        if (end == std::string::npos)
          break;
        output += formatOne(warp, lane, pattern.substr(i, end - i + 1), values, at);
        i = end;
      }
    }
    writeResult(warp, record, lane, 1, 4);
  });
}

/// __assertfail(message, file, line, function, characterSize)
void runAssert(Warp &warp, const Record &record, uint32_t mask) {
  unsigned lane = firstLane(mask);
  report(warp, FindingKind::Trap, lane,
         format("the assertion '{}' of {}:{} in '{}' does not hold",
                textAt(warp, lane, argument<uint64_t>(warp, record, lane, 0)),
                textAt(warp, lane, argument<uint64_t>(warp, record, lane, 1)),
                argument<uint32_t>(warp, record, lane, 2),
                textAt(warp, lane, argument<uint64_t>(warp, record, lane, 3))));
  abortBlock(*warp.block);
}

void runMalloc(Warp &warp, const Record &record, uint32_t mask) {
  warp.worker->changed = true;
  eachLane(mask, [&](unsigned lane) {
    auto size = argument<uint64_t>(warp, record, lane, 0);
    Address address = warp.block->grid->heap->allocate(size);
    if (const Allocation *heap = address ? warp.block->grid->view->find(address, size) : nullptr) {
      std::memset(heap->host + (address - heap->base), 0xA5, size);
      if (GlobalShadow &shadow = warp.block->grid->globalShadow; shadow.tracks())
        shadow.forget(size_t(heap - warp.block->grid->view->allocations().data()), address - heap->base, size);
      if (heap->written)
        std::memset(heap->written->data() + (address - heap->base), 0, size);
    }
    writeResult(warp, record, lane, address, 8);
  });
}

void runFree(Warp &warp, const Record &record, uint32_t mask) {
  warp.worker->changed = true;
  eachLane(mask, [&](unsigned lane) {
    auto address = argument<uint64_t>(warp, record, lane, 0);
    if (address && !(warp.block->grid->heap && warp.block->grid->heap->release(address)))
      report(warp, FindingKind::UseAfterFree, lane,
             format("frees {:#x}, which is no live allocation of malloc", address));
  });
}

} // namespace

void bindLibraryCall(Binding &b) {
  const ptx::Operand *results = nullptr, *target = nullptr, *arguments = nullptr;
  for (size_t i = 0; i < b.operandCount(); ++i) {
    const ptx::Operand &operand = b.operand(i);
    if (operand.kind == ptx::OperandKind::List)
      (target ? arguments : results) = &operand;
    else if (!target)
      target = &operand;
  }
  if (!target)
    b.fail("expected a function to call");
  struct Known {
    std::string_view name;
    size_t arguments;
    Executor run;
    std::array<uint32_t, 5> bytes; ///< of each argument
    uint32_t resultBytes = 4;
  };
  static const Known known[] = {{"vprintf", 2, runPrint, {8, 8}},
                                {"__assertfail", 5, runAssert, {8, 8, 4, 8, 8}},
                                {"malloc", 1, runMalloc, {8}, 8},
                                {"free", 1, runFree, {8}}};
  const Known *found = nullptr;
  for (const Known &candidate : known)
    if (candidate.name == target->text)
      found = &candidate;
  if (!found)
    b.unsupported(format("the function '{}', which is declared but not defined,", target->text));
  b.decoder.kernel().usesHeap |= found->run == runMalloc || found->run == runFree;
  LibraryCall call;
  auto place = [&](const ptx::Operand &operand, uint32_t bytes) {
    if (operand.kind != ptx::OperandKind::Variable ||
        b.decoder.frame(b.frame).places[operand.index].space != ptx::Space::Local ||
        b.decoder.frame(b.frame).function->variables[operand.index].size() < bytes)
      b.fail(operand, format("expected a '.param' variable of {} bytes", bytes));
    return b.decoder.frame(b.frame).places[operand.index].offset;
  };
  size_t given = arguments ? arguments->elements.size() : 0;
  if (given != found->arguments)
    b.fail(*target, format("expected {} arguments of '{}', but got {}", found->arguments, target->text, given));
  for (size_t i = 0; i < given; ++i)
    call.arguments.push_back(place(arguments->elements[i], found->bytes[i]));
  if (results && !results->elements.empty()) {
    call.hasResult = true;
    call.result = place(results->elements[0], found->resultBytes);
  }
  b.record.cls = InstructionClass::Other;
  b.record.run = found->run;
  b.record.op[0] = b.decoder.baseOf(b.frame);
  b.keep(std::move(call));
}

} // namespace weft::simulator::machine
