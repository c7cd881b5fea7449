// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The CUDA driver's side of the runtime, on the driver of FakeCuda.cpp (WEFT_LIBCUDA names it).
#include "Samples.h"

#include "runtime/Driver/Cuda.h"
#include "runtime/Driver/CudaApi.h"
#include "runtime/Launch/Launcher.h"
#include "runtime/Library/Digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
namespace ours = weft::driver::cuda;
static_assert(ours::attributeMaxSharedOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(ours::attributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(ours::attributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(ours::attributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(ours::attributeMaxThreadsPerBlock == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(ours::functionSharedBytes == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(ours::functionLocalBytes == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(ours::functionRegisters == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(ours::functionMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(ours::jitErrorLogBuffer == CU_JIT_ERROR_LOG_BUFFER);
static_assert(ours::jitErrorLogBufferBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(ours::launchAttributeCluster == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(sizeof(ours::LaunchConfig) == sizeof(CUlaunchConfig) &&
              sizeof(ours::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(ours::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(ours::LaunchConfig, attributeCount) == offsetof(CUlaunchConfig, numAttrs));
static_assert(offsetof(ours::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(ours::errorInvalidPtx == CUDA_ERROR_INVALID_PTX && ours::errorNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(ours::errorNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(ours::errorInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(ours::errorUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
#endif

using namespace weft;
using namespace weft::driver;
using testing::HasSubstr;

namespace {

int askFake(const char *question) {
  void *library = dlopen(std::getenv("WEFT_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int (*)()>(dlsym(library, question))();
}

int liveObjects() { return askFake("fakeCudaLiveObjects"); }

std::shared_ptr<Device> device(const std::string &name = "cuda:0") {
  Result<std::shared_ptr<Device>> opened = openDevice(name);
  EXPECT_TRUE(opened) << opened.error().message;
  return *opened;
}

std::span<const std::byte> bytesOf(const auto &values) { return std::as_bytes(std::span(values)); }

} // namespace

TEST(Cuda, DevicesAndProperties) {
  EXPECT_EQ(cudaDeviceCount(), 2);
  EXPECT_THAT(deviceNames(), testing::ElementsAre("cuda:0", "cuda:1", "simulator"));
  EXPECT_EQ(device("cuda")->name(), "cuda:0");
  auto second = device("cuda:1");
  EXPECT_EQ(second->name(), "cuda:1");
  EXPECT_EQ(second->properties().name, "Fake GPU 1");
  EXPECT_EQ(second->properties().major, 8);
  EXPECT_EQ(second->properties().minor, 6);
  EXPECT_EQ(second->properties().maxSharedBytes, 101376u);
  EXPECT_FALSE(second->properties().simulated);
}

TEST(Cuda, DevicesThatAreNot) {
  EXPECT_EQ(openDevice("cuda:2").error().code, StatusCode::NotFound);
  EXPECT_THAT(openDevice("cuda:2").error().message, HasSubstr("no device 'cuda:2': there are 2"));
  for (const char *name : {"cuda:", "cuda:-1", "cuda:x", "cuda:0x", "gpu", "simulator:", "simulator:sm"})
    EXPECT_EQ(openDevice(name).error().code, StatusCode::InvalidArgument) << name;
}

TEST(Cuda, CopiesAndFills) {
  auto gpu = device();
  std::vector<int> host{1, 2, 3, 4}, back(4);
  Address first = *gpu->allocate(16), second = *gpu->allocate(16);
  StreamHandle stream = *gpu->createStream();
  EXPECT_TRUE(gpu->copyIn(first, bytesOf(host), stream));
  EXPECT_TRUE(gpu->copyWithin(second, first, 16, stream));
  EXPECT_TRUE(gpu->fill(second, 0, 4, stream));
  EXPECT_TRUE(gpu->copyOut(std::as_writable_bytes(std::span(back)), second, stream));
  EXPECT_EQ(back, (std::vector<int>{0, 2, 3, 4}));
  EventHandle event = *gpu->createEvent();
  EXPECT_TRUE(gpu->recordEvent(event, stream));
  EXPECT_EQ(gpu->elapsedMilliseconds(event, event), 1.5f);
  EXPECT_TRUE(gpu->destroyEvent(event));
  EXPECT_TRUE(gpu->destroyStream(stream));
  EXPECT_TRUE(gpu->free(first));
  EXPECT_TRUE(gpu->free(second));
  EXPECT_FALSE(gpu->free(second));
}

TEST(Cuda, ErrorsCarryTheDriversWords) {
  auto gpu = device();
  Result<Address> huge = gpu->allocate(size_t(1) << 40);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, StatusCode::OutOfMemory);
  EXPECT_EQ(huge.error().message,
            "cannot allocate 1099511627776 bytes on cuda:0: out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
  auto module = gpu->loadModule("not PTX");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, StatusCode::Corrupt);
  EXPECT_THAT(module.error().message, HasSubstr("Missing .version directive"));
  int byte = 0;
  EXPECT_EQ(gpu->mapHost(&byte, 1).error().code, StatusCode::Unsupported);
}

TEST(Cuda, LaunchesAndReportsFaultsAtTheWait) {
  auto gpu = device();
  auto module = gpu->loadModule(samples::vectorAddPTX() + ".visible .entry fault() { ret; }");
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->kernel("sub", 0).error().code, StatusCode::NotFound);
  EXPECT_EQ((*module)->kernel("add", 200000).error().code, StatusCode::InvalidArgument);
  auto kernel = (*module)->kernel("add", 65536);
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ((*kernel)->attributes().registers, 26u);

  std::vector<float> x{1, 2, 3}, z(3);
  struct {
    Address x, y, z;
    int n;
  } parameters{*gpu->allocate(12), *gpu->allocate(12), *gpu->allocate(12), 3};
  EXPECT_TRUE(gpu->copyIn(parameters.x, bytesOf(x), nullptr));
  EXPECT_TRUE(gpu->copyIn(parameters.y, bytesOf(x), nullptr));
  std::span<const std::byte> packed(reinterpret_cast<const std::byte *>(&parameters), 28);
  for (Extent3 cluster : {Extent3{}, Extent3{2, 1, 1}}) {
    EXPECT_TRUE(gpu->fill(parameters.z, 0, 12, nullptr));
    Status status = (*kernel)->launch({{2}, {32}, cluster, 65536}, packed, nullptr);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(gpu->copyOut(std::as_writable_bytes(std::span(z)), parameters.z, nullptr));
    EXPECT_EQ(z, (std::vector<float>{2, 4, 6}));
  }
  // Parameters that are not the kernel's are refused: the driver would read behind them.
  for (size_t size : {size_t(0), size_t(24), size_t(28 + 64)}) {
    std::vector<std::byte> wrong(size);
    Status refused = (*kernel)->launch({{2}, {32}, {}, 65536}, wrong, nullptr);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, StatusCode::InvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("expected the 28 bytes of the kernel's parameters, but got"));
  }
  auto fault = (*module)->kernel("fault", 0);
  EXPECT_TRUE((*fault)->launch({{1}, {32}, {}, 0}, {}, nullptr));
  Status waited = gpu->synchronize(nullptr);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, StatusCode::DriverError);
  EXPECT_THAT(waited.error().message, HasSubstr("unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)"));
  for (Address address : {parameters.x, parameters.y, parameters.z})
    EXPECT_TRUE(gpu->free(address));
}

TEST(Cuda, NothingIsLeftBehind) {
  {
    auto gpu = device();
    auto module = gpu->loadModule(samples::vectorAddPTX());
    auto kernel = *(*module)->kernel("add", 0);
    module->reset();
    gpu.reset();
    EXPECT_EQ(liveObjects(), 2) << "a kernel keeps its module and its device's context alive";
  }
  EXPECT_EQ(liveObjects(), 0);
}

TEST(Cuda, ProgramsAreQueuedWithoutWaiting) {
  std::shared_ptr<Device> on = device();
  std::vector<library::File> files{{"add.sm_80.ptx", samples::vectorAddPTX("sm_80")},
                                   {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};
  auto library =
      std::make_shared<const library::Library>(*library::makeLibrary("chain", samples::chainProgram(), files));
  launch::Launcher launcher(library, on);
  Result<std::shared_ptr<const launch::Plan>> plan = launcher.program("chain");
  ASSERT_TRUE(plan) << plan.error().message;
  StreamHandle stream = *on->createStream();
  std::vector<float> ones(100, 1), sum(100);
  launch::Tensor tensor;
  tensor.rank = 1;
  tensor.shape[0] = 100;
  tensor.strides[0] = 1;
  tensor.address = *on->allocate(400);
  ASSERT_TRUE(on->copyIn(tensor.address, bytesOf(ones), stream));
  std::vector<launch::Tensor> inputs(5, tensor), outputs{tensor};
  outputs[0].address = *on->allocate(400);
  uint64_t bytes = (*plan)->require(inputs)->workspaceBytes;
  Address workspace = *on->allocate(bytes);
  int before = askFake("fakeCudaWaits");
  Status status = (*plan)->run(inputs, outputs, {workspace, bytes}, stream);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(askFake("fakeCudaWaits"), before);
  ASSERT_TRUE(on->copyOut(std::as_writable_bytes(std::span(sum)), outputs[0].address, stream));
  EXPECT_EQ(sum, std::vector<float>(100, 5));
  for (Address address : {tensor.address, outputs[0].address, workspace})
    ASSERT_TRUE(on->free(address));
  ASSERT_TRUE(on->destroyStream(stream));
}

namespace {

/// The chain of additions, with cubins for the targets: an older one of this architecture, its own, and one of another.
std::shared_ptr<const library::Library> chainWithCubins() {
  std::string ptx = samples::vectorAddPTX("sm_80");
  std::vector<library::File> files{{"add.sm_80.ptx", ptx}, {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};
  std::vector<std::array<std::string, 4>> cubins;
  for (int architecture : {80, 86, 90}) {
    std::string target = "sm_" + std::to_string(architecture), file = "add." + target + ".cubin";
    files.push_back({file, samples::cubin(architecture, {"add"})});
    cubins.push_back({file, target, "add.sm_80.ptx", library::sha256(ptx)});
  }
  Result<library::Library> made =
      library::makeLibrary("chain", samples::withCubins(samples::chainProgram(), cubins), files);
  EXPECT_TRUE(made) << made.error().message;
  return std::make_shared<const library::Library>(std::move(*made));
}

/// Runs the chain on ones. What was loaded before it ran, and after: all modules, and those from machine code.
struct Loads {
  int opened, ran, binaries;
};
Loads loadsOfARun() {
  std::shared_ptr<Device> on = device();
  int before = askFake("fakeCudaLoads"), binariesBefore = askFake("fakeCudaBinaryLoads");
  launch::Launcher launcher(chainWithCubins(), on);
  Result<std::shared_ptr<const launch::Plan>> plan = launcher.program("chain");
  EXPECT_TRUE(plan) << plan.error().message;
  int opened = askFake("fakeCudaLoads") - before;
  std::vector<float> ones(64, 1), sum(64);
  launch::Tensor tensor;
  tensor.rank = 1;
  tensor.shape[0] = 64;
  tensor.strides[0] = 1;
  tensor.address = *on->allocate(256);
  EXPECT_TRUE(on->copyIn(tensor.address, bytesOf(ones), nullptr));
  std::vector<launch::Tensor> inputs(5, tensor), outputs{tensor};
  outputs[0].address = *on->allocate(256);
  uint64_t bytes = (*plan)->require(inputs)->workspaceBytes;
  Address workspace = *on->allocate(bytes);
  for (int run = 0; run < 2; ++run) {
    Status status = (*plan)->run(inputs, outputs, {workspace, bytes}, nullptr);
    EXPECT_TRUE(status) << status.error().message;
  }
  EXPECT_TRUE(on->copyOut(std::as_writable_bytes(std::span(sum)), outputs[0].address, nullptr));
  EXPECT_EQ(sum, std::vector<float>(64, 5));
  for (Address address : {tensor.address, outputs[0].address, workspace})
    EXPECT_TRUE(on->free(address));
  return {opened, askFake("fakeCudaLoads") - before, askFake("fakeCudaBinaryLoads") - binariesBefore};
}

} // namespace

TEST(Cuda, NothingIsLoadedBeforeItRuns) {
  Loads loads = loadsOfARun();
  EXPECT_EQ(loads.opened, 0);
  EXPECT_EQ(loads.ran, 1) << "four launches of one kernel, twice";
  EXPECT_EQ(loads.binaries, 1) << "machine code is there for this GPU";
  std::shared_ptr<Device> on = device();
  launch::Launcher launcher(chainWithCubins(), on);
  int before = askFake("fakeCudaLoads");
  ASSERT_TRUE((*launcher.program("chain"))->load());
  EXPECT_EQ(askFake("fakeCudaLoads") - before, 1);
}

TEST(Cuda, PTXRunsWhereTheDriverKnowsNoSuchCubin) {
  for (const char *refusal : {"200", "209"}) { // CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU
    setenv("FAKE_CUDA_REFUSES", refusal, 1);
    Loads loads = loadsOfARun();
    EXPECT_EQ(loads.ran, 1);
    EXPECT_EQ(loads.binaries, 0);
  }
  setenv("FAKE_CUDA_REFUSES", "2", 1); // out of memory, which PTX would meet too
  launch::Launcher launcher(chainWithCubins(), device());
  Status status = (*launcher.program("chain"))->load();
  unsetenv("FAKE_CUDA_REFUSES");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, StatusCode::OutOfMemory);
  EXPECT_THAT(status.error().message, HasSubstr("'add.sm_86.cubin' of the library 'chain' on cuda:0: the cubin does "
                                                "not load: out of memory"));
}
