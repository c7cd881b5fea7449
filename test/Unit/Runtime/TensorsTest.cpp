// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shapes of a program's tensors: symbols bound, sizes checked, memory checked, runs of bytes.
#include "runtime/Launch/Tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::launch;
using library::Element;
using testing::HasSubstr;
using testing::Not;

namespace {

library::NamedTensor declare(const std::string &name, Element element, const std::vector<std::string> &dims) {
  static const std::vector<std::string> symbols{"B", "Hkv", "N"};
  library::NamedTensor tensor{name, {element, {}}, false, {}};
  for (const std::string &dim : dims)
    tensor.type.dims.push_back(*library::Expression::parse(dim, [](std::string_view text) -> std::optional<uint32_t> {
      auto found = std::ranges::find(symbols, text);
      return found == symbols.end() ? std::nullopt : std::optional<uint32_t>(found - symbols.begin());
    }));
  return tensor;
}

/// q [B, 4*Hkv, N, 64] and k [B, Hkv, N, 64], fp16.
library::Program attention() {
  library::Program program;
  program.symbols = {"B", "Hkv", "N"};
  program.inputs = {declare("q", Element::FP16, {"B", "4*Hkv", "N", "64"}),
                    declare("k", Element::FP16, {"B", "Hkv", "N", "64"})};
  program.outputs = {declare("y", Element::FP16, {"B", "4*Hkv", "N", "64"})};
  return program;
}

Tensor tensor(std::initializer_list<int64_t> shape, Element element = Element::FP16, uint64_t address = 4096) {
  Tensor made;
  made.address = address;
  made.element = element;
  made.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), made.shape.begin());
  int64_t stride = 1;
  for (int32_t axis = made.rank; axis--; stride *= made.shape[axis])
    made.strides[axis] = stride;
  return made;
}

std::string refusal(const std::vector<Tensor> &inputs, const library::Program &program = attention()) {
  Result<std::vector<int64_t>> symbols = bindSymbols(program, inputs, false);
  return symbols ? "accepted" : symbols.error().message;
}

} // namespace

TEST(Tensors, SymbolsAreBoundWhereTheyStandAlone) {
  Result<std::vector<int64_t>> symbols =
      bindSymbols(attention(), std::vector{tensor({2, 12, 100, 64}), tensor({2, 3, 100, 64})}, false);
  ASSERT_TRUE(symbols) << symbols.error().message;
  EXPECT_EQ(*symbols, (std::vector<int64_t>{2, 3, 100}));
}

TEST(Tensors, SizesThatDisagree) {
  EXPECT_THAT(refusal({tensor({2, 12, 100, 64}), tensor({2, 3, 99, 64})}),
              HasSubstr("argument 'k': expected size N = 100 on axis 2, as in 'q', but got 99"));
  EXPECT_THAT(refusal({tensor({2, 10, 100, 64}), tensor({2, 3, 100, 64})}),
              HasSubstr("argument 'q': expected size 4*Hkv = 12 on axis 1, but got 10"));
  EXPECT_THAT(refusal({tensor({2, 12, 100, 65}), tensor({2, 3, 100, 64})}),
              HasSubstr("argument 'q': expected size 64 on axis 3, but got 65"));
  EXPECT_THAT(refusal({tensor({12, 100, 64}), tensor({2, 3, 100, 64})}),
              HasSubstr("argument 'q': expected 4 axes, [B, 4*Hkv, N, 64], but got 3: [12, 100, 64]"));
  EXPECT_THAT(refusal({tensor({2, 12, 100, 64})}), HasSubstr("expected 2 arguments (q, k), but got 1"));
  EXPECT_THAT(refusal({tensor({2, 12, 100, 64}, Element::BF16), tensor({2, 3, 100, 64})}),
              HasSubstr("argument 'q': expected elements of fp16, but got bf16"));
  Tensor wild = tensor({2, 12, 100, 64});
  for (int32_t rank : {-1, 9, 1000}) {
    wild.rank = rank;
    EXPECT_THAT(refusal({wild, wild}), HasSubstr("expected 4 axes"));
  }
  wild = tensor({2, 12, -1, 64});
  EXPECT_THAT(refusal({wild, wild}), HasSubstr("expected sizes of 0 to 2147483647, but got -1 on axis 2"));
}

TEST(Tensors, MemoryThatKernelsCannotRead) {
  Tensor good = tensor({2, 3, 100, 64}), q = tensor({2, 12, 100, 64});
  Tensor bad = q;
  bad.strides[3] = 2;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("expected the last axis to be contiguous, but its stride is 2 elements"));
  bad = q;
  bad.address = 0;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("argument 'q': expected an address, but got 0"));
  bad.address = 4097;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("an address that is a multiple of 2 bytes, but got 0x1001"));
  bad = q;
  bad.strides[2] = (int64_t(1) << 31) / 99 + 1;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("expected the 100 rows of axis 2 to lie within 2^31 elements"));
  bad = q; // the last row begins within 2^31 elements, and ends outside
  bad.shape[2] = 2;
  bad.strides[2] = (int64_t(1) << 31) - 56;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("expected the 2 rows of axis 2 to lie within 2^31 elements"));
  bad.strides[2] -= 8;
  EXPECT_THAT(refusal({bad, good}), Not(HasSubstr("2^31 elements")));
  bad = q;
  bad.strides[2] = INT64_MIN;
  EXPECT_THAT(refusal({bad, good}), HasSubstr("expected an axis to reach over at most 2^48 elements"));
  library::Program aligned = attention();
  aligned.inputs[0].aligned = true;
  EXPECT_EQ(refusal({q, good}, aligned), "accepted");
  bad = q;
  bad.address += 8;
  EXPECT_THAT(refusal({bad, good}, aligned), HasSubstr("a multiple of 16 bytes, but got 0x1008: pass a copy of it"));
  bad = q;
  bad.strides[1] += 4;
  EXPECT_THAT(refusal({bad, good}, aligned), HasSubstr("strides that are multiples of 16 bytes, but that of axis 1"));
}

TEST(Tensors, WhatIsEmptyOrSingleNeedsNoMemory) {
  Tensor q = tensor({2, 12, 0, 64}, Element::FP16, 0), k = tensor({2, 3, 0, 64}, Element::FP16, 0);
  EXPECT_EQ(refusal({q, k}), "accepted");
  q = tensor({1, 4, 1, 64}), k = tensor({1, 1, 1, 64});
  q.strides[0] = q.strides[2] = 7; // of axes with one element
  EXPECT_EQ(refusal({q, k}), "accepted");
}

TEST(Tensors, Outputs) {
  library::NamedTensor declared = attention().outputs[0];
  Tensor expected = tensor({2, 12, 100, 64}, Element::FP16, 0);
  auto refusalOf = [&](const Tensor &given) {
    Status status = checkOutput(declared, expected, given);
    return status ? "accepted" : status.error().message;
  };
  Tensor given = tensor({2, 12, 100, 64});
  EXPECT_EQ(refusalOf(given), "accepted");
  std::swap(given.strides[1],
            given.strides[2]); // [B, N, H, D] in memory, nearly: sizes 12 and 100 with each other's strides
  EXPECT_THAT(refusalOf(given), HasSubstr("expected elements that do not overlap"));
  given.strides = {76800, 64, 768, 1};
  EXPECT_EQ(refusalOf(given), "accepted");
  given.strides[0] = 0;
  EXPECT_THAT(refusalOf(given), HasSubstr("output 'y': expected elements that do not overlap"));
  EXPECT_THAT(refusalOf(tensor({2, 12, 99, 64})),
              HasSubstr("expected shape [2, 12, 100, 64], but got [2, 12, 99, 64]"));
}

TEST(Tensors, SizesOfResults) {
  library::TensorType type = declare("y", Element::FP32, {"B", "cdiv(N, 64)"}).type;
  Result<Tensor> made = contiguousTensor(type, std::vector<int64_t>{3, 1, 65});
  ASSERT_TRUE(made);
  EXPECT_EQ((std::vector<int64_t>{made->shape[0], made->shape[1]}), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(made->strides[0], 2);
  EXPECT_EQ(bytesOf(*made), 24u);
  EXPECT_FALSE(isEmpty(*made));
  EXPECT_THAT(
      contiguousTensor(declare("y", Element::FP32, {"B - 4"}).type, std::vector<int64_t>{3, 1, 1}).error().message,
      HasSubstr("expected sizes of 0 to 2147483647, but B - 4 is -1"));
  EXPECT_THAT(contiguousTensor(declare("y", Element::FP32, {"N", "N"}).type, std::vector<int64_t>{1, 1, INT32_MAX})
                  .error()
                  .message,
              HasSubstr("more elements than memory could hold"));
}

TEST(Tensors, RunsOfBytes) {
  ByteRuns whole = runsOf(tensor({2, 3, 4}));
  EXPECT_EQ(whole.count, 1u);
  EXPECT_EQ(whole.bytes, 48u);
  Tensor strided = tensor({2, 3, 4});
  strided.strides = {100, 8, 1};
  ByteRuns runs = runsOf(strided);
  EXPECT_EQ(runs.count, 6u);
  EXPECT_EQ(runs.bytes, 8u);
}

TEST(Tensors, ZeroTouchesTheTensorOnly) {
  auto device = *driver::openDevice("simulator");
  std::vector<float> host(200, 1);
  driver::Address at = *device->mapHost(host.data(), host.size() * 4);
  Tensor strided = tensor({2, 3, 4}, Element::FP32, at + 4 * 20);
  strided.strides = {100, -8, 1}; // rows 20, 12 and 4 of each half
  ASSERT_TRUE(zero(*device, strided, nullptr));
  for (int i = 0; i < 200; ++i) {
    int inHalf = i % 100;
    bool inside = inHalf >= 4 && inHalf < 24 && (inHalf - 4) % 8 < 4;
    EXPECT_EQ(host[i], inside ? 0 : 1) << i;
  }
  ASSERT_TRUE(device->unmapHost(at));
}

TEST(Tensors, Overlap) {
  Tensor left = tensor({4, 16}, Element::FP32, 4096), right = tensor({16}, Element::FP32, 4096 + 256);
  EXPECT_FALSE(overlap(left, right));
  right.address -= 4;
  EXPECT_TRUE(overlap(left, right) && overlap(right, left));
  left.address += 3 * 64; // its last row first
  left.strides[0] = -16;
  EXPECT_TRUE(overlap(left, right));
  left.strides[0] = 0; // one row, four times
  EXPECT_TRUE(overlap(left, right));
  right.address = 4096;
  EXPECT_FALSE(overlap(left, right));
  right.shape[0] = 0;
  EXPECT_FALSE(overlap(right, right));
  // Queries and keys side by side in one projection's rows: their spans meet, and no element does.
  Tensor q = tensor({8, 16}, Element::FP32, 4096), k = tensor({8, 16}, Element::FP32, 4096 + 64);
  q.strides[0] = k.strides[0] = 48;
  EXPECT_FALSE(overlap(q, k));
  EXPECT_TRUE(overlap(q, q));
}
