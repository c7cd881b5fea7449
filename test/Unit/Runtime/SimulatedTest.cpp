// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Driver/Driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

using namespace weft;
using namespace weft::driver;
using testing::HasSubstr;

namespace {

std::shared_ptr<Device> simulated(const std::string &name = "simulator") { return *openDevice(name); }

struct Parameters {
  Address x, y, z;
  int n;
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte *>(this), 28}; }
};

} // namespace

TEST(Simulated, AnswersAsTheTargetItIsOpenedAs) {
  EXPECT_EQ(simulated()->properties().major, 9);
  EXPECT_TRUE(simulated()->properties().simulated);
  EXPECT_EQ(simulated()->name(), "simulator");
  auto ampere = simulated("simulator:sm_80");
  EXPECT_EQ(ampere->properties().major, 8);
  EXPECT_EQ(ampere->name(), "simulator:sm_80");
  EXPECT_TRUE(ampere->loadModule(samples::vectorAddPTX("sm_80")));
  auto hopper = ampere->loadModule(samples::vectorAddPTX("sm_90a"));
  ASSERT_FALSE(hopper);
  EXPECT_EQ(hopper.error().code, StatusCode::WrongTarget);
  EXPECT_TRUE(simulated()->loadModule(samples::vectorAddPTX("sm_90a")));
}

TEST(Simulated, RunsTensorMemoryWhereItsTargetHasIt) {
  const std::string body = R"(.version 8.6
.target TARGET
.address_size 64
.visible .entry k() {
  .reg .b32 %r<2>; .shared .align 4 .b32 place;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;
  ld.shared.b32 %r0, [place];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;
  ret;
})";
  auto ptx = [&](const std::string &target) { return std::string(body).replace(body.find("TARGET"), 6, target); };
  auto blackwell = simulated("simulator:sm_100a");
  EXPECT_EQ(blackwell->properties().major, 10);
  EXPECT_EQ(blackwell->name(), "simulator:sm_100a");
  auto module = blackwell->loadModule(ptx("sm_100a"));
  ASSERT_TRUE(module) << module.error().message;
  Status status = (*(*module)->kernel("k", 0))->launch({{1}, {32}, {}, 0}, {}, nullptr);
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(blackwell->loadModule(samples::vectorAddPTX("sm_90a")).error().code, StatusCode::WrongTarget);
  EXPECT_EQ(simulated()->loadModule(ptx("sm_100a")).error().code, StatusCode::WrongTarget);
  auto without = simulated()->loadModule(ptx("sm_90a"));
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("line 6"));
  EXPECT_THAT(without.error().message,
              HasSubstr("'tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32' on 'sm_90a'"));
}

TEST(Simulated, DefaultDeviceFollowsTheEnvironment) {
  setenv("WEFT_DEVICE", "simulator:sm_80", 1);
  EXPECT_EQ(defaultDeviceName(), "simulator:sm_80");
  EXPECT_EQ((*openDevice(""))->name(), "simulator:sm_80");
  unsetenv("WEFT_DEVICE");
  setenv("WEFT_SIMULATOR_CHECKS", "nonsense", 1);
  Result<std::shared_ptr<Device>> refused = openDevice("simulator");
  unsetenv("WEFT_SIMULATOR_CHECKS");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("WEFT_SIMULATOR_CHECKS"));
  setenv("WEFT_SIMULATOR_APPROXIMATIONS", "wild", 1);
  refused = openDevice("simulator");
  unsetenv("WEFT_SIMULATOR_APPROXIMATIONS");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("expected approximations 'close' or 'loose', but got 'wild'"));
}

TEST(Simulated, LaunchOnHostMemoryInPlace) {
  auto device = simulated();
  auto kernel = *(*device->loadModule(samples::vectorAddPTX()))->kernel("add", 0);
  std::vector<float> x(100, 1.5f), y(100, 2), z(100, -1);
  Parameters parameters{*device->mapHost(x.data(), 400), *device->mapHost(y.data(), 400),
                        *device->mapHost(z.data(), 400), 99};
  Status status = kernel->launch({{2}, {64}, {}, 0}, parameters.bytes(), nullptr);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(z[0], 3.5f);
  EXPECT_EQ(z[98], 3.5f);
  EXPECT_EQ(z[99], -1);
  for (Address address : {parameters.x, parameters.y, parameters.z})
    EXPECT_TRUE(device->unmapHost(address));
  EXPECT_FALSE(device->unmapHost(parameters.x));
}

TEST(Simulated, OutOfBoundsIsAFinding) {
  auto device = simulated();
  auto kernel = *(*device->loadModule(samples::vectorAddPTX()))->kernel("add", 0);
  std::vector<std::byte> zeros(400);
  Parameters parameters{*device->allocate(400), *device->allocate(400), *device->allocate(396), 100};
  EXPECT_TRUE(device->copyIn(parameters.x, zeros, nullptr));
  EXPECT_TRUE(device->copyIn(parameters.y, zeros, nullptr));
  Status status = kernel->launch({{2}, {64}, {}, 0}, parameters.bytes(), nullptr);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, StatusCode::Finding);
  EXPECT_THAT(status.error().message, HasSubstr("out-of-bounds"));
  EXPECT_THAT(status.error().message, HasSubstr("PTX line"));
}

TEST(Simulated, MappingsThatShareMemory) {
  auto device = simulated();
  std::vector<char> memory(256);
  Address whole = *device->mapHost(memory.data(), 256);
  Address inside = *device->mapHost(memory.data() + 64, 64);
  EXPECT_EQ(inside, whole + 64);
  EXPECT_TRUE(device->unmapHost(whole));
  std::byte byte{};
  EXPECT_TRUE(device->copyOut({&byte, 1}, inside, nullptr)) << "the mapping lives while one of its users does";
  EXPECT_EQ(device->mapHost(memory.data() + 200, 100).error().code, StatusCode::InvalidArgument);
  EXPECT_TRUE(device->unmapHost(inside));
  EXPECT_FALSE(device->copyOut({&byte, 1}, inside, nullptr));
}

TEST(Simulated, MappingsThatNoMemoryHolds) {
  auto on = *openDevice("simulator");
  std::array<char, 64> data{};
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 4096, size_t(1) << 47})
    EXPECT_FALSE(on->mapHost(data.data(), bytes)) << bytes;
  auto whole = on->mapHost(data.data(), 64);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(on->mapHost(data.data() + 8, SIZE_MAX));
  EXPECT_TRUE(on->unmapHost(*whole));
}

TEST(Simulated, ModulesOutliveWhatMadeThem) {
  std::shared_ptr<Kernel> kernel;
  {
    auto device = simulated();
    auto module = *device->loadModule(samples::vectorAddPTX());
    EXPECT_THAT(module->kernel("sub", 0).error().message, HasSubstr("no entry 'sub': it has 'add'"));
    EXPECT_EQ(module->kernel("add", 1 << 20).error().code, StatusCode::InvalidArgument);
    kernel = *module->kernel("add", 0);
  }
  Parameters none{0, 0, 0, 0};
  EXPECT_TRUE(kernel->launch({{1}, {32}, {}, 0}, none.bytes(), nullptr));
}

TEST(Simulated, StreamsAndEvents) {
  auto device = simulated();
  StreamHandle stream = *device->createStream();
  EventHandle begin = *device->createEvent(), end = *device->createEvent();
  EXPECT_TRUE(device->recordEvent(begin, stream));
  EXPECT_TRUE(device->recordEvent(end, stream));
  EXPECT_GE(*device->elapsedMilliseconds(begin, end), 0.0f);
  EXPECT_TRUE(device->synchronize(stream));
  EXPECT_TRUE(device->destroyEvent(begin));
  EXPECT_TRUE(device->destroyEvent(end));
  EXPECT_TRUE(device->destroyStream(stream));
}
