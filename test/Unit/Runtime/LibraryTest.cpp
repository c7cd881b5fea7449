// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Library/Library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

using namespace weft;
using namespace weft::library;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

const std::vector<File> files{{"add.sm_80.ptx", samples::vectorAddPTX("sm_80")},
                              {"add.sm_90a.ptx", samples::vectorAddPTX("sm_90a")}};

class LibraryOnDisk : public testing::Test {
protected:
  samples::TemporaryDirectory temporary;
  fs::path path = temporary.path / "libadd";

  void SetUp() override {
    Status status = write();
    ASSERT_TRUE(status) << status.error().message;
  }
  Status write() { return writeLibrary(path, samples::vectorAddKernels(), files); }
  Error refusal() {
    Result<Library> library = openLibrary(path);
    return library ? Error{StatusCode::Ok, "opened"} : library.error();
  }
  void put(const fs::path &file, std::string_view bytes) { std::ofstream(file, std::ios::binary) << bytes; }
};

} // namespace

TEST_F(LibraryOnDisk, RoundTrip) {
  Result<Library> library = openLibrary(path);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ(library->parts[0], files[0].bytes);
  EXPECT_EQ(library->parts[1], files[1].bytes);
  EXPECT_EQ(library->manifest.kernels[0].name, "add");
  EXPECT_EQ(std::distance(fs::directory_iterator(path), fs::directory_iterator()), 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary.path), fs::directory_iterator()), 1)
      << "scratch left behind";
}

/// PTX whose entry is other than the manifest says would read arguments as others.
TEST_F(LibraryOnDisk, PTXOfAnotherEntry) {
  auto refusal = [&](const std::string &from, const std::string &to) {
    std::string ptx = files[0].bytes;
    ptx.replace(ptx.find(from), from.size(), to);
    Status status = writeLibrary(path, samples::vectorAddKernels(), {{files[0].name, ptx}, files[1]});
    return status ? "written" : status.error().message;
  };
  EXPECT_EQ(refusal("u32 n)", "s32 n)"), "written");
  EXPECT_THAT(refusal("entry add", "entry sub"),
              HasSubstr("add.sm_80.ptx: expected an entry 'add', but the PTX has 'sub', of the kernel 'add'"));
  EXPECT_THAT(refusal(", .param .u32 n", ""), HasSubstr("expected the 3 parameters that the PTX declares for the entry "
                                                        "'add', but got 4"));
  EXPECT_THAT(refusal("u64 z", "u32 z"),
              HasSubstr("expected parameter 2 of the entry 'add' to be 4 bytes at 16, as the "
                        "PTX declares it, but '*fp32' is 8 bytes at 16"));
  EXPECT_THAT(refusal("u64 z", "align 32 .b8 z[8]"), HasSubstr("to be 8 bytes at 32, as"));
  EXPECT_THAT(refusal("ret;", std::string("ret;\0", 5)), HasSubstr("expected PTX, but got a null character at byte "));
}

/// A manifest that an old or a careless writer sealed is held against its PTX when it is opened, too.
TEST_F(LibraryOnDisk, ManifestOfAnotherEntry) {
  Result<std::string> text = composeManifest(samples::vectorAddKernels(), files);
  ASSERT_TRUE(text);
  size_t at = text->find("\"i32\"");
  ASSERT_NE(at, text->npos);
  text->replace(at, 5, "\"i64\"");
  std::string sealed = *composeManifest(*text, files);
  std::ofstream(path / "manifest.json", std::ios::binary | std::ios::trunc) << sealed;
  EXPECT_EQ(refusal().code, StatusCode::Corrupt);
  EXPECT_THAT(refusal().message, HasSubstr("expected parameter 3 of the entry 'add' to be 4 bytes at 24"));
}

TEST_F(LibraryOnDisk, WhatAParserPassesOver) {
  std::string text = *composeManifest(samples::vectorAddKernels(), files);
  auto refusalOf = [&](const std::string &changed) {
    std::ofstream(path / "manifest.json", std::ios::binary | std::ios::trunc) << changed;
    return refusal().message;
  };
  EXPECT_EQ(refusalOf(text), "opened");
  EXPECT_THAT(refusalOf("\xef\xbb\xbf" + text), HasSubstr("manifest.json: no JSON: it begins with a byte order mark"));
  EXPECT_THAT(refusalOf(text + std::string("\0 more", 6)), HasSubstr("is a null character"));
  EXPECT_THAT(refusalOf(text + "x"), HasSubstr("manifest.json: no JSON: parse error"));
}

TEST_F(LibraryOnDisk, NoDirectory) {
  Result<Library> library = openLibrary(path / "nowhere");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, StatusCode::NotFound);
}

TEST_F(LibraryOnDisk, ForeignDirectory) {
  Result<Library> library = openLibrary(temporary.path);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, StatusCode::Corrupt);
  EXPECT_THAT(library.error().message, HasSubstr("not a Weft library"));
}

TEST_F(LibraryOnDisk, TruncatedPart) {
  fs::resize_file(path / files[0].name, 100);
  EXPECT_EQ(refusal().code, StatusCode::Corrupt);
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_80.ptx: cut short: expected"));
}

TEST_F(LibraryOnDisk, LongerPart) {
  put(path / files[0].name, files[0].bytes + " ");
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_80.ptx: expected at most"));
}

TEST_F(LibraryOnDisk, AlteredPart) {
  std::string bytes = files[1].bytes;
  bytes[bytes.size() / 2] ^= 1;
  put(path / files[1].name, bytes);
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_90a.ptx: altered"));
}

TEST_F(LibraryOnDisk, MissingPart) {
  fs::remove(path / files[0].name);
  EXPECT_EQ(refusal().code, StatusCode::Corrupt);
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_80.ptx: No such file"));
}

TEST_F(LibraryOnDisk, LinkedPart) {
  fs::rename(path / files[0].name, temporary.path / "elsewhere");
  fs::create_symlink(temporary.path / "elsewhere", path / files[0].name);
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_80.ptx: is a symbolic link"));
}

TEST_F(LibraryOnDisk, PartThatIsADirectory) {
  fs::remove(path / files[0].name);
  fs::create_directory(path / files[0].name);
  EXPECT_THAT(refusal().message, HasSubstr("add.sm_80.ptx: is no plain file"));
}

TEST_F(LibraryOnDisk, TruncatedManifest) {
  fs::resize_file(path / manifestName, fs::file_size(path / manifestName) / 2);
  EXPECT_THAT(refusal().message, HasSubstr("manifest.json: cut short"));
}

TEST_F(LibraryOnDisk, ReplacesAnOlderLibrary) {
  put(path / "left-over.ptx", "from the older one");
  Status status = write();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_FALSE(fs::exists(path / "left-over.ptx"));
  EXPECT_TRUE(openLibrary(path));
}

TEST_F(LibraryOnDisk, LeavesOtherThingsAlone) {
  fs::path home = temporary.path / "precious";
  fs::create_directory(home);
  put(home / "thesis.tex", "years of work");
  Status status = writeLibrary(home, samples::vectorAddKernels(), files);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, StatusCode::InvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("something that is no Weft library is there"));
  EXPECT_EQ(fs::file_size(home / "thesis.tex"), 13u);
  EXPECT_FALSE(writeLibrary(home / "thesis.tex", samples::vectorAddKernels(), files));
  for (const char *none : {"", ".", "..", "./", "libadd/."})
    EXPECT_FALSE(writeLibrary(none, samples::vectorAddKernels(), files)) << none;
  // Nor is what somebody put into a library deleted with it.
  put(path / "notes.txt", "which sizes it was tuned for");
  EXPECT_THAT(write().error().message, HasSubstr("'notes.txt', which is no part of a Weft library, is there"));
  fs::remove(path / "notes.txt");
  fs::create_directory(path / "older");
  EXPECT_THAT(write().error().message, HasSubstr("'older', which is no part of a Weft library, is there"));
  EXPECT_TRUE(openLibrary(path));
}

TEST_F(LibraryOnDisk, EmptyDirectoryAndTrailingSlash) {
  fs::path empty = temporary.path / "empty";
  fs::create_directory(empty);
  EXPECT_TRUE(writeLibrary(empty, samples::vectorAddKernels(), files));
  EXPECT_TRUE(openLibrary(empty));
  EXPECT_TRUE(writeLibrary((temporary.path / "new" / "deep" / "").string(), samples::vectorAddKernels(), files));
  EXPECT_TRUE(openLibrary(temporary.path / "new" / "deep"));
}

TEST_F(LibraryOnDisk, WritesNothingThatCouldNotBeRead) {
  fs::path other = temporary.path / "other";
  Status status = writeLibrary(other, samples::vectorAddKernels(), {files[0]});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("no part is named 'add.sm_90a.ptx'"));
  EXPECT_FALSE(writeLibrary(other, R"({"kernels": 3})", {}));
  EXPECT_FALSE(writeLibrary(other, "[", {}));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(LibraryOnDisk, NeverSeenHalfWritten) {
  std::atomic<bool> stop = false;
  std::atomic<int> opened = 0;
  std::string wrong;
  std::thread reader([&] {
    while (!stop) {
      Result<Library> library = openLibrary(path);
      if (library)
        ++opened;
      else
        wrong = library.error().message;
    }
  });
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(write());
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, "");
  EXPECT_GT(opened, 0);
}
