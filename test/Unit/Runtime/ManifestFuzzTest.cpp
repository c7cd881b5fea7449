// Part of Weft. SPDX-License-Identifier: Apache-2.0
// 10^5 damaged manifests, each either read or refused with a text, never a crash. Half are damaged as text; half as
// JSON values with the digest put right again, or nothing past the digest would ever be reached. WEFT_FUZZ_SEED and
// WEFT_FUZZ_COUNT repeat or lengthen a run.
#include "Samples.h"

#include "runtime/Library/Digest.h"
#include "runtime/Library/Json.h"
#include "runtime/Library/Manifest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

using namespace weft;
using namespace weft::library;
using nlohmann::json;

namespace {

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  /// One to four byte-level changes.
  std::string text(std::string bytes) {
    for (size_t changes = 1 + pick(4); changes-- && !bytes.empty();) {
      size_t at = pick(bytes.size());
      switch (pick(6)) {
      case 0:
        bytes[at] = static_cast<char>(pick(256));
        break;
      case 1:
        bytes.erase(at, 1 + pick(32));
        break;
      case 2:
        bytes.insert(at, 1 + pick(4), "{}[],:\"\\0-e9\n\xff"[pick(14)]);
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(at, bytes.substr(pick(bytes.size()), pick(64)));
        break;
      default:
        bytes[at] ^= static_cast<char>(1 << pick(8));
      }
    }
    return bytes;
  }

  /// One to three changes of values anywhere in the document, and a digest that fits.
  std::string document(json root) {
    for (size_t changes = 1 + pick(3); changes--;)
      change(anywhere(root));
    if (root.is_object()) {
      root.erase("digest");
      root["digest"] = "sha256:" + sha256(canonicalJson(root));
    }
    return root.dump(-1, ' ', false, json::error_handler_t::replace);
  }

private:
  size_t pick(size_t count) { return random() % count; }

  json &anywhere(json &root) {
    json *at = &root;
    while (at->is_structured() && !at->empty() && pick(5)) {
      auto member = at->begin();
      std::advance(member, pick(at->size()));
      at = &*member;
    }
    return *at;
  }

  void change(json &value) {
    if (value.is_array() && !value.empty() && pick(2))
      return pick(2) ? value.erase(pick(value.size())) : value.push_back(json(value[pick(value.size())])), void();
    if (value.is_object() && !value.empty() && pick(2)) {
      auto member = value.begin();
      std::advance(member, pick(value.size()));
      value.erase(member);
      return;
    }
    if (value.is_string() && pick(2)) {
      value = text(value.get<std::string>());
      return;
    }
    static const std::vector<json> interesting{0,
                                               1,
                                               -1,
                                               INT64_MAX,
                                               INT64_MIN,
                                               UINT64_MAX,
                                               0.5,
                                               1e308,
                                               true,
                                               nullptr,
                                               "",
                                               "..",
                                               "sm_80",
                                               "add",
                                               "*fp32",
                                               "n",
                                               "cdiv(n, 0)",
                                               "N",
                                               "chain",
                                               "add.sm_80.ptx",
                                               5,
                                               8,
                                               9,
                                               json{{"pointer", 6}},
                                               json{{"stride", {0, 0}}},
                                               json{{"size", "N"}},
                                               json{{"real", 0.5}},
                                               json::array(),
                                               json::object(),
                                               std::string(5000, 'x'),
                                               std::string(200, '(')};
    value = interesting[pick(interesting.size())];
  }

  std::mt19937_64 random;
};

/// Every index that a run follows is in range, and every tensor is written once, before it is read.
void checkPrograms(const Manifest &manifest) {
  for (const Program &program : manifest.programs)
    for (const PlanVariant &plan : program.variants) {
      size_t inputs = program.inputs.size(), outputs = program.outputs.size();
      std::vector<int> written(inputs + outputs + plan.buffers.size());
      std::fill_n(written.begin(), inputs, 1);
      auto rankOf = [&](uint32_t tensor) {
        return (tensor < inputs             ? program.inputs[tensor].type
                : tensor < inputs + outputs ? program.outputs[tensor - inputs].type
                                            : plan.buffers[tensor - inputs - outputs])
            .dims.size();
      };
      for (const PlanLaunch &launch : plan.launches) {
        ASSERT_LT(launch.kernel, manifest.kernels.size());
        const Kernel &kernel = manifest.kernels[launch.kernel];
        ASSERT_LT(launch.variant, kernel.variants.size());
        ASSERT_EQ(launch.arguments.size(), kernel.arguments.size());
        for (uint32_t tensor : launch.writes) {
          ASSERT_LT(tensor, written.size());
          ASSERT_EQ(written[tensor]++, 0);
        }
        for (const PlanArgument &argument : launch.arguments) {
          if (argument.kind == PlanArgument::Kind::Pointer) {
            ASSERT_LT(argument.tensor, written.size());
            ASSERT_EQ(written[argument.tensor], 1);
          }
          if (argument.kind == PlanArgument::Kind::Stride) {
            ASSERT_LT(argument.axis, rankOf(argument.tensor));
          }
        }
        std::vector<int64_t> symbols(program.symbols.size(), 3);
        for (const Expression &extent : launch.grid)
          (void)extent.evaluate(symbols);
      }
      for (size_t i = 0; i < outputs; ++i)
        ASSERT_EQ(written[inputs + i], 1);
    }
}

} // namespace

TEST(ManifestFuzz, NeverCrashes) {
  uint64_t seed = fromEnvironment("WEFT_FUZZ_SEED", std::random_device{}());
  uint64_t count = fromEnvironment("WEFT_FUZZ_COUNT", 100000);
  printf("WEFT_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::vector<File> files{{"add.sm_80.ptx", "80"}, {"add.sm_90a.ptx", "90"}, {"add.sm_86.cubin", "86"}};
  std::array<std::string, 4> cubin{"add.sm_86.cubin", "sm_86", "add.sm_80.ptx", sha256("80")};
  Result<std::string> good = composeManifest(samples::withCubins(samples::chainProgram(), {cubin}), files);
  ASSERT_TRUE(good);
  json document = json::parse(*good);
  Mutator mutate(seed);
  size_t accepted = 0, refused = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Result<Manifest> manifest = parseManifest(i % 2 ? mutate.text(*good) : mutate.document(document));
    (manifest ? accepted : refused)++;
    if (!manifest) {
      ASSERT_EQ(manifest.error().code, StatusCode::Corrupt);
      ASSERT_FALSE(manifest.error().message.empty());
    } else { // what is accepted holds together: every index that the launcher follows is in range
      checkPrograms(*manifest);
      for (const Cubin &each : manifest->cubins) {
        ASSERT_LT(each.part, manifest->parts.size());
        ASSERT_LT(each.ptx, manifest->parts.size());
      }
      for (const Kernel &kernel : manifest->kernels)
        for (const Variant &variant : kernel.variants) {
          ASSERT_LT(variant.part, manifest->parts.size());
          for (const Guard &guard : variant.guards) {
            ASSERT_LT(guard.argument, kernel.arguments.size());
            ASSERT_GE(guard.divisibleBy, 1);
          }
        }
    }
  }
  printf("%zu accepted, %zu refused\n", accepted, refused);
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, accepted);
}
