// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Library.h"
#include "runtime/Simulator/Machine/Interpreter.h"
#include "runtime/Simulator/Machine/Lanes.h"
#include "runtime/Support/Format.h"

#include <cstdio>

namespace weft::simulator::machine {
namespace {

/// Record::aux: where the arguments and the result lie in local memory.
struct LibraryCall {
  std::vector<uint32_t> arguments;
  uint32_t result = 0;
  bool hasResult = false;
};

std::byte *localBytes(Warp &warp, unsigned lane, uint32_t offset) {
  return warp.local.data() + size_t(lane) * warp.kernel->localBytes + offset;
}

template <typename T> T argument(Warp &warp, unsigned lane, const LibraryCall &call, size_t index) {
  T value;
  std::memcpy(&value, localBytes(warp, lane, call.arguments[index]), sizeof(T));
  return value;
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
  if (plain.size() > 24)
    return spec;
  char buffer[512];
  switch (kind) {
  case 'd':
  case 'i': {
    int64_t value = isLong ? int64_t(take(8)) : int64_t(int32_t(take(4)));
    std::snprintf(buffer, sizeof buffer, (plain + "lld").c_str(), static_cast<long long>(value));
    return buffer;
  }
  case 'u':
  case 'x':
  case 'X':
  case 'o':
    std::snprintf(buffer, sizeof buffer, (plain + "ll" + kind).c_str(),
                  static_cast<unsigned long long>(take(isLong ? 8 : 4)));
    return buffer;
  case 'c':
    return std::string(1, char(take(4)));
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
    return format("{:#x}", take(8));
  case 's':
    return textAt(warp, lane, take(8));
  default:
    return spec;
  }
}

void runPrint(Warp &warp, const Record &record, uint32_t mask) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  std::string &output = warp.worker->output[warp.block->index];
  eachLane(mask, [&](unsigned lane) {
    std::string pattern = textAt(warp, lane, argument<uint64_t>(warp, lane, call, 0));
    std::span<const std::byte> values = bytesAt(warp, lane, argument<uint64_t>(warp, lane, call, 1));
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
    if (call.hasResult) {
      int32_t one = 1;
      std::memcpy(localBytes(warp, lane, call.result), &one, 4);
    }
  });
  if (call.hasResult && !warp.localWritten.empty())
    eachLane(mask, [&](unsigned lane) {
      std::memset(warp.localWritten.data() + size_t(lane) * warp.kernel->localBytes + call.result, 1, 4);
    });
}

/// __assertfail(message, file, line, function, characterSize)
void runAssert(Warp &warp, const Record &record, uint32_t mask) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  unsigned lane = firstLane(mask);
  report(warp, FindingKind::Trap, lane,
         format("the assertion '{}' of {}:{} in '{}' does not hold",
                textAt(warp, lane, argument<uint64_t>(warp, lane, call, 0)),
                textAt(warp, lane, argument<uint64_t>(warp, lane, call, 1)), argument<uint32_t>(warp, lane, call, 2),
                textAt(warp, lane, argument<uint64_t>(warp, lane, call, 3))));
  abortBlock(*warp.block);
}

void writeResult(Warp &warp, unsigned lane, const LibraryCall &call, uint64_t value, unsigned bytes) {
  if (!call.hasResult)
    return;
  std::memcpy(localBytes(warp, lane, call.result), &value, bytes);
  if (!warp.localWritten.empty())
    std::memset(warp.localWritten.data() + size_t(lane) * warp.kernel->localBytes + call.result, 1, bytes);
}

void runMalloc(Warp &warp, const Record &record, uint32_t mask) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    writeResult(warp, lane, call, warp.block->grid->heap->allocate(argument<uint64_t>(warp, lane, call, 0)), 8);
  });
}

void runFree(Warp &warp, const Record &record, uint32_t mask) {
  const auto &call = *static_cast<const LibraryCall *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    auto address = argument<uint64_t>(warp, lane, call, 0);
    if (address && !(warp.block->grid->heap && warp.block->grid->heap->release(address)))
      report(warp, FindingKind::UseAfterFree, lane,
             format("frees {:#x}, which is no live allocation of malloc", address));
  });
}

} // namespace

Address DeviceHeap::allocate(uint64_t size) {
  std::lock_guard lock(mutex_);
  if (size == 0 || size > bytes)
    return 0;
  size = (size + 15) / 16 * 16;
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second < size)
      continue;
    auto [address, room] = *at;
    free_.erase(at);
    if (room > size)
      free_[address + size] = room - size;
    used_[address] = size;
    return address;
  }
  return 0;
}

bool DeviceHeap::release(Address address) {
  if (address < base_ || address >= base_ + bytes)
    return false;
  std::lock_guard lock(mutex_);
  auto used = used_.find(address);
  if (used == used_.end())
    return false;
  auto at = free_.emplace(address, used->second).first;
  used_.erase(used);
  if (auto after = std::next(at); after != free_.end() && at->first + at->second == after->first) {
    at->second += after->second;
    free_.erase(after);
  }
  if (at != free_.begin())
    if (auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      free_.erase(at);
    }
  return true;
}

void bindLibraryCall(Binding &b) {
  const ptx::Operand *results = nullptr, *target = nullptr, *arguments = nullptr;
  for (const ptx::Operand &operand : b.instruction.operands) {
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
  };
  static const Known known[] = {
      {"vprintf", 2, runPrint}, {"__assertfail", 5, runAssert}, {"malloc", 1, runMalloc}, {"free", 1, runFree}};
  const Known *found = nullptr;
  for (const Known &candidate : known)
    if (candidate.name == target->text)
      found = &candidate;
  if (!found)
    b.unsupported(format("the function '{}', which is declared but not defined,", target->text));
  b.decoder.kernel().usesHeap |= found->run == runMalloc || found->run == runFree;
  LibraryCall call;
  auto place = [&](const ptx::Operand &operand) {
    if (operand.kind != ptx::OperandKind::Variable ||
        b.decoder.frame(b.frame).places[operand.index].space != ptx::Space::Local)
      b.fail(operand, "expected a '.param' variable");
    return b.decoder.frame(b.frame).places[operand.index].offset;
  };
  for (size_t i = 0; arguments && i < arguments->elements.size(); ++i)
    call.arguments.push_back(place(arguments->elements[i]));
  if (call.arguments.size() != found->arguments)
    b.fail(*target,
           format("expected {} arguments of '{}', but got {}", found->arguments, target->text, call.arguments.size()));
  if (results && !results->elements.empty()) {
    call.hasResult = true;
    call.result = place(results->elements[0]);
  }
  b.record.cls = InstructionClass::Other;
  b.record.run = found->run;
  b.keep(std::move(call));
}

} // namespace weft::simulator::machine
