// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Launch/Launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

std::shared_ptr<const library::Library> addLibrary(const std::string &ptx80 = samples::vectorAddPTX("sm_80")) {
  samples::TemporaryDirectory temporary;
  std::vector<library::File> files{{"add.sm_80.ptx", ptx80}, {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};
  EXPECT_TRUE(library::writeLibrary(temporary.path / "lib", samples::vectorAddKernels(), files));
  return std::make_shared<const library::Library>(*library::openLibrary(temporary.path / "lib"));
}

std::shared_ptr<driver::Device> device(const std::string &name) { return *driver::openDevice(name); }

struct Arrays {
  driver::Device &on;
  std::vector<float> x, y, z;
  std::vector<Value> values;
  Arrays(driver::Device &on, size_t n) : on(on), x(n, 1), y(n, 2), z(n) {
    for (std::vector<float> *array : {&x, &y, &z})
      values.push_back(Value::ofAddress(*on.mapHost(array->data(), n * 4)));
    values.push_back(Value::ofInteger(n));
  }
  ~Arrays() {
    for (size_t i = 0; i < 3; ++i)
      (void)on.unmapHost(values[i].address);
  }
};

} // namespace

TEST(Launcher, LaunchesTheVariantForTheDevice) {
  for (auto [name, n, variant, grid] :
       {std::tuple("simulator", 1024, 0u, 8u), {"simulator", 1000, 1u, 16u}, {"simulator:sm_80", 1024, 1u, 16u}}) {
    auto on = device(name);
    Launcher launcher(addLibrary(), on);
    Arrays arrays(*on, n);
    Result<LaunchChoice> choice = launcher.launch("add", {}, arrays.values, nullptr);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->variant, variant);
    EXPECT_EQ(choice->grid.x, grid);
    EXPECT_EQ(arrays.z, std::vector<float>(n, 3));
  }
}

TEST(Launcher, TheCallersGridWins) {
  auto on = device("simulator");
  Launcher launcher(addLibrary(), on);
  Arrays arrays(*on, 1024);
  ASSERT_TRUE(launcher.launch("add", driver::Extent3{1, 1, 1}, arrays.values, nullptr));
  EXPECT_EQ(arrays.z[127], 3);
  EXPECT_EQ(arrays.z[128], 0);
}

TEST(Launcher, Refusals) {
  auto on = device("simulator:sm_75");
  Launcher launcher(addLibrary(), on);
  Arrays arrays(*on, 64);
  auto wrong = launcher.launch("add", {}, arrays.values, nullptr);
  EXPECT_EQ(wrong.error().code, StatusCode::WrongTarget);
  auto unknown = launcher.launch("sub", {}, arrays.values, nullptr);
  EXPECT_EQ(unknown.error().code, StatusCode::NotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("has no kernel 'sub': it has 'add'"));
  arrays.values.resize(3);
  auto few = launcher.launch("add", {}, arrays.values, nullptr);
  EXPECT_THAT(few.error().message, HasSubstr("'add': expected 4 arguments, but got 3"));
  arrays.values.push_back(Value::ofReal(64));
}

TEST(Launcher, PTXThatDoesNotLoadIsNamed) {
  auto on = device("simulator:sm_80");
  Launcher launcher(addLibrary(samples::vectorAddPTX("sm_80") + "not PTX at all"), on);
  Arrays arrays(*on, 64);
  auto torn = launcher.launch("add", {}, arrays.values, nullptr);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, StatusCode::Corrupt);
  EXPECT_THAT(torn.error().message, HasSubstr("'add.sm_80.ptx' of the library"));
}

TEST(Launcher, FromSeveralThreads) {
  auto on = device("simulator");
  Launcher launcher(addLibrary(), on);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Arrays arrays(*on, 256);
      for (int i = 0; i < 10; ++i)
        if (!launcher.launch("add", {}, arrays.values, nullptr))
          return;
      right += arrays.z == std::vector<float>(256, 3);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 4);
}
