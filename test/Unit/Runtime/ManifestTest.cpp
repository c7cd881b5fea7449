// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Library/Digest.h"
#include "runtime/Library/Json.h"
#include "runtime/Library/Manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::library;
using nlohmann::json;
using testing::HasSubstr;

static const std::vector<File> vectorAddFiles{{"add.sm_80.ptx", samples::vectorAddPTX("sm_80")},
                                              {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};

/// A good manifest as JSON.
static json good() { return json::parse(*composeManifest(samples::vectorAddKernels(), vectorAddFiles)); }

/// The text of a document whose digest is right for what it says.
static std::string sealed(json document) {
  document.erase("digest");
  document["digest"] = "sha256:" + sha256(canonicalJson(document));
  return document.dump();
}

/// Why the manifest is refused, after `change` and with its digest put right.
template <typename Change> static std::string refusal(Change change) {
  json document = good();
  change(document);
  Result<Manifest> manifest = parseManifest(sealed(document));
  if (manifest)
    return "accepted";
  EXPECT_EQ(manifest.error().code, StatusCode::Corrupt);
  return manifest.error().message;
}

TEST(Manifest, KnownDigest) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-4, B.1
}

TEST(Manifest, ReadsBackWhatWasComposed) {
  Result<Manifest> manifest = parseManifest(good().dump(2));
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->weftVersion, "0.1.0");
  ASSERT_EQ(manifest->parts.size(), 2u);
  EXPECT_EQ(manifest->parts[0].bytes, vectorAddFiles[0].bytes.size());
  EXPECT_EQ(manifest->parts[0].sha256, sha256(vectorAddFiles[0].bytes));
  ASSERT_EQ(manifest->kernels.size(), 1u);
  const Kernel &kernel = manifest->kernels[0];
  EXPECT_EQ(kernel.name, "add");
  EXPECT_EQ(kernel.sourceLine, 3u);
  ASSERT_EQ(kernel.arguments.size(), 4u);
  EXPECT_TRUE(kernel.arguments[0].type.pointer);
  EXPECT_EQ(kernel.arguments[3].type.bits, 32);
  ASSERT_EQ(kernel.variants.size(), 2u);
  const Variant &first = kernel.variants[0];
  EXPECT_EQ(first.target, (driver::Target{9, 0, 'a'}));
  EXPECT_EQ(first.part, 1u);
  EXPECT_EQ(first.numWarps, 4u);
  EXPECT_EQ(first.constants.at("BLOCK"), Constant(int64_t(128)));
  EXPECT_EQ(first.constants.at("CAUSAL"), Constant(true));
  EXPECT_EQ(first.constants.at("SCALE"), Constant(0.5));
  EXPECT_EQ(first.constants.at("DTYPE"), Constant(std::string("fp32")));
  EXPECT_EQ(first.constants.at("BIAS"), Constant());
  ASSERT_EQ(first.guards.size(), 1u);
  EXPECT_EQ(first.guards[0].argument, 3u);
  EXPECT_EQ(first.guards[0].divisibleBy, 16);
  EXPECT_FALSE(first.resources);
  ASSERT_TRUE(kernel.variants[1].resources);
  EXPECT_EQ(kernel.variants[1].resources->registers, 12u);
}

TEST(Manifest, UnknownKeysAreIgnored) {
  json document = good();
  document["kernels"][0]["variants"][0]["tuned_on"] = "a later version's key";
  EXPECT_TRUE(parseManifest(sealed(document)));
}

TEST(Manifest, WhiteSpaceAndOrderDoNotCount) {
  EXPECT_TRUE(parseManifest(good().dump()));
  EXPECT_TRUE(parseManifest(good().dump(7, '\t')));
}

TEST(Manifest, Truncated) {
  std::string text = good().dump(2);
  for (size_t size = 1; size < text.size(); ++size) {
    Result<Manifest> manifest = parseManifest(text.substr(0, size));
    ASSERT_FALSE(manifest) << size;
    ASSERT_THAT(manifest.error().message, HasSubstr("cut short")) << size;
  }
}

TEST(Manifest, Altered) {
  json document = good();
  document["kernels"][0]["variants"][0]["shared_bytes"] = 64;
  Result<Manifest> manifest = parseManifest(document.dump());
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message, HasSubstr("altered"));
}

TEST(Manifest, Foreign) {
  for (const char *text : {"{}", "[]", "3", "null", "\"weft-library\"", R"({"schema": "other"})", R"({"schema": 1})"}) {
    Result<Manifest> manifest = parseManifest(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_THAT(manifest.error().message, HasSubstr("not a Weft library")) << text;
  }
  EXPECT_THAT(parseManifest("<html>").error().message, HasSubstr("no JSON"));
}

TEST(Manifest, OtherSchemaVersion) {
  EXPECT_THAT(refusal([](json &d) { d["schema_version"] = 2; }), HasSubstr("expected version 1, but got 2"));
  EXPECT_THAT(refusal([](json &d) { d["schema_version"] = "1"; }), HasSubstr("schema_version: expected an integer"));
}

TEST(Manifest, KeyTwice) {
  std::string text = good().dump();
  text.insert(1, R"("schema": "weft-library", )");
  Result<Manifest> manifest = parseManifest(text);
  ASSERT_FALSE(manifest);
  EXPECT_THAT(manifest.error().message, HasSubstr("the key 'schema' stands twice"));
}

TEST(Manifest, DeepNesting) {
  std::string deep(1000000, '[');
  EXPECT_THAT(parseManifest(deep).error().message, HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += R"({"a":)";
  EXPECT_THAT(parseManifest(objects).error().message, HasSubstr("nested deeper"));
}

TEST(Manifest, Oversized) {
  EXPECT_THAT(parseManifest(std::string(maxManifestBytes + 1, ' ')).error().message, HasSubstr("expected at most"));
  EXPECT_THAT(refusal([](json &d) { d["parts"][0]["bytes"] = uint64_t(1) << 40; }),
              HasSubstr("parts[0].bytes: expected an integer from 0 to"));
  EXPECT_THAT(refusal([](json &d) { d["parts"][0]["bytes"] = UINT64_MAX; }), HasSubstr("parts[0].bytes"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0]["arguments"] = json::array_t(2000, json::object()); }),
              HasSubstr("at most 1024 elements"));
}

TEST(Manifest, PathsThatEscape) {
  for (const char *name : {"../add.ptx", "/etc/passwd", "a/b.ptx", ".", "..", "", ".hidden", "a\\b", "a b"})
    EXPECT_THAT(refusal([&](json &d) { d["parts"][0]["file"] = name; }), HasSubstr("parts[0].file: expected a name"))
        << name;
  EXPECT_THAT(refusal([](json &d) { d["parts"][0]["file"] = std::string("a\0b", 3); }), HasSubstr("parts[0].file"));
  EXPECT_THAT(refusal([](json &d) { d["parts"][0]["file"] = "manifest.json"; }), HasSubstr("part of itself"));
}

TEST(Manifest, EachDefectIsNamedWithItsPlace) {
  auto variant = [](json &d) -> json & { return d["kernels"][0]["variants"][1]; };
  EXPECT_THAT(refusal([&](json &d) { variant(d)["target"] = "gfx90a"; }),
              HasSubstr("kernels[0].variants[1].target: expected a target"));
  EXPECT_THAT(refusal([&](json &d) { variant(d).erase("target"); }),
              HasSubstr("kernels[0].variants[1].target: is missing"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["ptx"] = "other.ptx"; }), HasSubstr("no part is named 'other.ptx'"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["num_warps"] = 64; }),
              HasSubstr("num_warps: expected an integer from 1 to 32, but got 64"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["num_warps"] = 4.5; }), HasSubstr("but got 4.5"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["entry"] = "a b"; }), HasSubstr("entry: expected a name"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["guards"] = {{{"argument", "q"}}}; }),
              HasSubstr("no argument is named 'q'"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["guards"] = {{{"argument", "n"}, {"divisible_by", 0}}}; }),
              HasSubstr("divisible_by: expected an integer from 1"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["grid"] = {"1", "1"}; }),
              HasSubstr("grid: expected 3 expressions, but got 2"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["grid"][0] = "cdiv(n, WIDTH)"; }),
              HasSubstr("grid[0]: in the grid expression"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["grid"][0] = "x"; }),
              HasSubstr("no argument or constant is named 'x'"));
  EXPECT_THAT(refusal([&](json &d) { variant(d)["cluster"] = {1, 2, 3, 4}; }),
              HasSubstr("cluster: expected at most 3"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0]["variants"] = json::array(); }), HasSubstr("at least one variant"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0]["arguments"][0]["type"] = "*fp12"; }),
              HasSubstr("but got '*fp12'"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0]["arguments"][0]["type"] = "fp8e5"; }),
              HasSubstr("but got 'fp8e5'"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0]["arguments"][0]["name"] = "n"; }), HasSubstr("two are named 'n'"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"].push_back(d["kernels"][0]); }),
              HasSubstr("kernels: two are named 'add'"));
  EXPECT_THAT(refusal([](json &d) { d["kernels"][0] = 7; }),
              HasSubstr("kernels[0]: expected an object, but got number"));
  EXPECT_THAT(refusal([](json &d) { d["parts"][0]["sha256"] = "00"; }), HasSubstr("64 lower-case hexadecimal digits"));
}

TEST(Manifest, RealsTakeNoGuard) {
  std::string message = refusal([](json &d) {
    d["kernels"][0]["arguments"][3]["type"] = "fp32";
    for (json &variant : d["kernels"][0]["variants"])
      variant.erase("grid");
  });
  EXPECT_THAT(message, HasSubstr("expected an integer or a pointer, but 'n' is 'fp32'"));
}
