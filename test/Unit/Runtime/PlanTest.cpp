// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs run on the simulator.
#include "Samples.h"

#include "runtime/Launch/Launcher.h"
#include "runtime/Library/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::shared_ptr<const library::Library> chainLibrary(const std::string &json = samples::chainProgram()) {
  std::vector<library::File> files{{"add.sm_80.ptx", samples::vectorAddPTX("sm_80")},
                                   {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};
  Result<library::Library> made = library::makeLibrary("chain", json, files);
  EXPECT_TRUE(made) << made.error().message;
  return std::make_shared<const library::Library>(std::move(*made));
}

/// Five vectors of n random numbers, a place for their sum, and a workspace, all poisoned where they are not input.
struct Chain {
  driver::Device &on;
  std::vector<std::vector<float>> host;
  std::vector<Tensor> inputs, outputs;
  driver::Address workspace = 0;
  uint64_t bytes = 0;

  Chain(driver::Device &on, const Plan &plan, int64_t n, unsigned seed) : on(on), host(6) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < 6; ++i) {
      host[i].assign(n, NAN);
      for (float &value : host[i])
        value = i < 5 ? normal(random) : NAN;
      Tensor tensor;
      tensor.rank = 1;
      tensor.shape[0] = n;
      tensor.strides[0] = 1;
      tensor.address = n ? *on.mapHost(host[i].data(), n * 4) : 0;
      (i < 5 ? inputs : outputs).push_back(tensor);
    }
    Result<Requirements> needs = plan.require(inputs);
    EXPECT_TRUE(needs);
    bytes = needs->workspaceBytes;
    workspace = *on.allocate(bytes);
    EXPECT_TRUE(bytes == 0 || on.fill(workspace, 0xFF, bytes, nullptr));
  }
  ~Chain() {
    for (const std::vector<Tensor> *tensors : {&inputs, &outputs})
      for (const Tensor &tensor : *tensors)
        if (tensor.address)
          (void)on.unmapHost(tensor.address);
    (void)on.free(workspace);
  }
  bool right() const {
    for (size_t i = 0; i < host[0].size(); ++i)
      if (host[5][i] != host[0][i] + host[1][i] + host[2][i] + host[3][i] + host[4][i])
        return false;
    return true;
  }
};

struct Ready {
  std::shared_ptr<driver::Device> device = *driver::openDevice("simulator:sm_80");
  Launcher launcher;
  std::shared_ptr<const Plan> plan;
  explicit Ready(const std::string &json = samples::chainProgram()) : launcher(chainLibrary(json), device) {
    Result<std::shared_ptr<const Plan>> made = launcher.program("chain");
    EXPECT_TRUE(made) << made.error().message;
    plan = *made;
  }
};

unsigned freshSeed() {
  unsigned seed = std::random_device{}();
  printf("seed %u\n", seed);
  return seed;
}

} // namespace

TEST(Plan, RunsItsLaunchesInOrder) {
  Ready ready;
  for (int64_t n : {1, 63, 64, 65, 1000}) {
    Chain chain(*ready.device, *ready.plan, n, freshSeed());
    EXPECT_EQ(chain.bytes, 2 * ((n * 4 + 255) / 256 * 256)) << "two of three buffers share";
    Status status = ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(chain.right()) << n;
  }
}

/// The chain with another plan for 100 to 199 elements.
static std::string twoPlans() {
  nlohmann::json document = nlohmann::json::parse(samples::chainProgram());
  nlohmann::json &variants = document["programs"][0]["variants"];
  nlohmann::json first = variants[0];
  first["guards"] = {{{"size", "N"}, {"at_least", 100}, {"below", 200}}};
  first["launches"][0]["grid"][0] = "cdiv(N, 32)"; // twice the blocks do the same
  variants.insert(variants.begin(), std::move(first));
  return document.dump();
}

TEST(Plan, TakesTheFirstWhoseGuardsHold) {
  Ready ready(twoPlans());
  EXPECT_EQ(&ready.plan->variant(), &ready.plan->program().variants[1]);
  for (auto [n, expected] : {std::pair<int64_t, size_t>{99, 1}, {100, 0}, {199, 0}, {200, 1}, {1, 1}}) {
    Chain chain(*ready.device, *ready.plan, n, freshSeed());
    Result<size_t> chosen = ready.plan->choose(chain.inputs);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_EQ(*chosen, expected) << n;
    Status status = ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(chain.right()) << n;
  }
  Result<size_t> few = ready.plan->choose({});
  EXPECT_THAT(few.error().message, HasSubstr("'chain': expected 5 arguments"));
}

TEST(Plan, IsMadeOnce) {
  Ready ready;
  EXPECT_EQ(ready.plan, *ready.launcher.program("chain"));
  auto unknown = ready.launcher.program("chains");
  EXPECT_EQ(unknown.error().code, StatusCode::NotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("has no program 'chains': it has 'chain'"));
}

TEST(Plan, ShapesOfResults) {
  Ready ready;
  Tensor input;
  input.rank = 1;
  input.shape[0] = 100;
  Result<Requirements> needs = ready.plan->require(std::vector<Tensor>(5, input)); // neither addresses nor strides
  ASSERT_TRUE(needs) << needs.error().message;
  ASSERT_EQ(needs->outputs.size(), 1u);
  EXPECT_EQ(needs->outputs[0].shape[0], 100);
  EXPECT_EQ(needs->outputs[0].strides[0], 1);
  EXPECT_EQ(needs->workspaceBytes, 1024u);
  Result<Requirements> few = ready.plan->require(std::vector<Tensor>(2, input));
  EXPECT_THAT(few.error().message, HasSubstr("'chain': expected 5 arguments (a, b, c, d, e), but got 2"));
}

TEST(Plan, NothingToDo) {
  Ready ready;
  Chain chain(*ready.device, *ready.plan, 0, freshSeed());
  EXPECT_EQ(chain.bytes, 0u);
  EXPECT_TRUE(ready.plan->run(chain.inputs, chain.outputs, {}, nullptr));
}

TEST(Plan, AnEmptyGridLeavesZeros) {
  Ready ready(replaced(samples::chainProgram(), "cdiv(N, 64)", "N / 64"));
  Chain chain(*ready.device, *ready.plan, 63, freshSeed());
  Status status = ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(chain.host[5], std::vector<float>(63, 0));
}

TEST(Plan, ZeroedTensorsAreZeroBefore) {
  // The first launch adds only 64 of 128 elements; the rest of its result is what it was zeroed to.
  std::string json = samples::chainProgram();
  std::string first = "\"grid\": [\"cdiv(N, 64)\", \"1\", \"1\"], \"writes\": [6], \"zeroed\": []";
  ASSERT_NE(json.find(first), std::string::npos);
  Ready ready(replaced(json, first, R"("grid": ["1", "1", "1"], "writes": [6], "zeroed": [6])"));
  Chain chain(*ready.device, *ready.plan, 128, freshSeed());
  ASSERT_TRUE(ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr));
  for (size_t i = 0; i < 128; ++i) {
    float sum = i < 64 ? chain.host[0][i] + chain.host[1][i] : 0;
    EXPECT_EQ(chain.host[5][i], sum + chain.host[2][i] + chain.host[3][i] + chain.host[4][i]);
  }
}

TEST(Plan, RefusesBeforeAnythingRuns) {
  Ready ready;
  Chain chain(*ready.device, *ready.plan, 100, freshSeed());
  auto refusal = [&](const Plan &plan, std::span<const Tensor> outputs, Workspace workspace) {
    Status status = plan.run(chain.inputs, outputs, workspace, nullptr);
    EXPECT_TRUE(std::isnan(chain.host[5][0]));
    return status ? "accepted" : status.error().message;
  };
  Workspace whole{chain.workspace, chain.bytes};
  EXPECT_THAT(refusal(*ready.plan, {}, whole), HasSubstr("'chain': expected 1 outputs, but got 0"));
  EXPECT_THAT(refusal(*ready.plan, chain.outputs, {}),
              HasSubstr("expected a workspace of 1024 bytes at a multiple of 256, but got 0 bytes"));
  EXPECT_THAT(refusal(*ready.plan, chain.outputs, {chain.workspace + 8, chain.bytes}), HasSubstr("a multiple of 256"));
  EXPECT_THAT(refusal(*ready.plan, std::span(chain.inputs).first(1), whole),
              HasSubstr("output 'sum': expected memory of its own, but it shares some with argument 'a'"));
  Ready huge(replaced(samples::chainProgram(), R"json(["cdiv(N, 64)", "1", "1"])json", R"(["1", "N * 1000", "1"])"));
  EXPECT_THAT(refusal(*huge.plan, chain.outputs, whole),
              HasSubstr("expected a grid of 0 to 65535 blocks for the kernel 'add', but N * 1000 is 100000"));
}

TEST(Plan, RefusesMemoryThatIsShared) {
  Ready ready;
  Chain chain(*ready.device, *ready.plan, 100, freshSeed());
  auto refusal = [&](driver::Address output, driver::Address workspace) {
    std::vector<Tensor> outputs = chain.outputs;
    outputs[0].address = output;
    Status status = ready.plan->run(chain.inputs, outputs, {workspace, chain.bytes}, nullptr);
    return status ? "accepted" : status.error().message;
  };
  driver::Address b = chain.inputs[1].address, own = chain.outputs[0].address;
  for (driver::Address at : {b - 396, b - 4, b, b + 4, b + 396})
    EXPECT_THAT(refusal(at, chain.workspace),
                HasSubstr("output 'sum': expected memory of its own, but it shares some with "
                          "argument '"));
  EXPECT_THAT(refusal(chain.workspace + 512, chain.workspace),
              HasSubstr("expected a workspace of its own memory, but it shares some with output 'sum'"));
  EXPECT_THAT(refusal(own, b / 256 * 256),
              HasSubstr("expected a workspace of its own memory, but it shares some with "));
  EXPECT_EQ(refusal(own, chain.workspace), "accepted");
}

TEST(Plan, RefusesSizesThatAProgramRequiresMoreOf) {
  nlohmann::json document = nlohmann::json::parse(samples::chainProgram());
  document["programs"][0]["requires"] = {{{"size", "2*N"}, {"at_least", "100"}, {"what", "'a' to reach all"}}};
  Ready ready(document.dump());
  Tensor tensor;
  tensor.rank = 1;
  tensor.shape[0] = 49;
  tensor.strides[0] = 1;
  Result<Requirements> needs = ready.plan->require(std::vector<Tensor>(5, tensor));
  ASSERT_FALSE(needs);
  EXPECT_EQ(needs.error().message, "'chain': expected 'a' to reach all, but got 2*N = 98 for 100");
  tensor.shape[0] = 50;
  EXPECT_TRUE(ready.plan->require(std::vector<Tensor>(5, tensor)));
}

/// A sum of two vectors, whose third input says where sequences that are packed into 8 tokens start.
static std::string packedProgram() {
  nlohmann::json document = nlohmann::json::parse(samples::chainProgram());
  nlohmann::json &program = document["programs"][0];
  nlohmann::json vector = program["inputs"][0], launch = program["variants"][0]["launches"][0];
  nlohmann::json other = vector, starts{{"name", "starts"}, {"type", "i32"}, {"dims", {"S"}}, {"starts", {"N", "8"}}};
  other["name"] = "b";
  launch["writes"] = {3};
  launch["arguments"][2]["pointer"] = 3;
  program["inputs"] = {vector, other, starts};
  program["variants"][0]["buffers"] = nlohmann::json::array();
  program["variants"][0]["launches"] = {launch};
  return document.dump();
}

/// What comes of a run of `packedProgram` on `n` tokens whose starts are `numbers`.
static std::string runOfPacked(int64_t n, std::vector<int32_t> numbers) {
  Ready ready(packedProgram());
  std::vector<float> x(n, 1), y(n, 2), sum(n, NAN);
  auto tensor = [&](auto &values, library::Element element) {
    Tensor made{.address = values.empty() ? 0 : *ready.device->mapHost(values.data(), values.size() * 4),
                .element = element,
                .rank = 1};
    made.shape[0] = static_cast<int64_t>(values.size());
    made.strides[0] = 1;
    return made;
  };
  std::vector<Tensor> inputs{tensor(x, library::Element::FP32), tensor(y, library::Element::FP32),
                             tensor(numbers, library::Element::I32)};
  std::vector<Tensor> outputs{tensor(sum, library::Element::FP32)};
  Status status = ready.plan->run(inputs, outputs, {}, nullptr);
  EXPECT_EQ(std::isnan(sum[0]), !status) << "nothing runs before the check";
  return status ? "accepted" : status.error().message;
}

TEST(Plan, RefusesStartsThatDoNotRiseFrom0ToTheTokens) {
  for (const std::vector<int32_t> &right : {std::vector<int32_t>{0, 8}, {0, 0, 3, 3, 8, 8}})
    EXPECT_EQ(runOfPacked(8, right), "accepted");
  const std::string expected =
      "'chain': argument 'starts': expected numbers that rise from 0 to the number of tokens, ";
  const std::string remedy = ": give the token at which each sequence starts, and the end of the last";
  EXPECT_EQ(runOfPacked(8, {0, 5, 3, 8}), expected + "N = 8, but got [0, 5, 3, 8]" + remedy);
  EXPECT_EQ(runOfPacked(8, {0, 1, 2, 3, 4, 5, 6, 7, 9}),
            expected + "N = 8, but got [0, 1, 2, 3, 4, 5, 6, 7, ...]" + remedy);
  EXPECT_EQ(runOfPacked(9, {0, 9}), expected + "8, but got [0, 9]" + remedy) << "of each number of tokens";
  for (const std::vector<int32_t> &wrong : {std::vector<int32_t>{}, {0}, {8}, {1, 8}, {0, 7}, {0, -1, 8}, {0, 1 << 30}})
    EXPECT_THAT(runOfPacked(8, wrong), HasSubstr(expected));
}

TEST(Plan, GuardsOfKernels) {
  std::string json =
      replaced(samples::chainProgram(), R"("guards": [])",
               R"("guards": [{"argument": "n", "divisible_by": 16}, {"argument": "y", "divisible_by": 4096}])");
  Ready ready(json);
  Chain chain(*ready.device, *ready.plan, 100, freshSeed());
  Status status = ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr);
  ASSERT_FALSE(status);
  bool aligned = chain.inputs[1].address % 4096 == 0;
  EXPECT_THAT(status.error().message,
              HasSubstr(aligned ? "expected the size N to be a multiple of 16, but got 100"
                                : "expected the address of argument 'b' to be a multiple of 4096"));
}

TEST(Plan, WrongTarget) {
  auto on = *driver::openDevice("simulator:sm_75");
  Launcher launcher(chainLibrary(), on);
  auto wrong = launcher.program("chain");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, StatusCode::WrongTarget);
  EXPECT_THAT(wrong.error().message, HasSubstr("the program 'chain' is compiled for sm_80, and none of these runs on"));
}

TEST(Plan, FromSeveralThreads) {
  Ready ready;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  unsigned seed = freshSeed();
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Chain chain(*ready.device, *ready.plan, 200 + t, seed + t);
      for (int i = 0; i < 5; ++i)
        if (!ready.plan->run(chain.inputs, chain.outputs, {chain.workspace, chain.bytes}, nullptr))
          return;
      right += chain.right();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 4);
}
