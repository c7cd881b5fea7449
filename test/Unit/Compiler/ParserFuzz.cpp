// Part of Weft. SPDX-License-Identifier: Apache-2.0
// 10^5 mutations of the lit suite's own tile and warp IR go through the parser, the verifiers and, where they are still
// valid, the canonicalizer and the printer, in this process. None may crash; what is refused must say why; what is
// accepted must print as text that is accepted again. WEFT_TEST_SEED repeats a run, WEFT_FUZZ_MUTATIONS sets their
// number.
#include "compiler/Support/TextGuard.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace mlir;

namespace {

constexpr const char *corpusFiles[] = {"Tile/ops.mlir", "Tile/canonicalize.mlir", "Warp/ops.mlir",
                                       "Warp/canonicalize.mlir", "Warp/Transforms/allocate-shared.mlir"};

/// The functions and modules of the corpus files, each a small module of its own, without comments.
std::vector<std::string> corpus() {
  std::vector<std::string> snippets;
  for (const char *file : corpusFiles) {
    auto buffer = llvm::MemoryBuffer::getFile(std::string(WEFT_TEST_DIR "/") + file);
    if (!buffer)
      continue;
    std::string aliases, snippet;
    SmallVector<StringRef> lines;
    ptrdiff_t open = 0; // braces
    (*buffer)->getBuffer().split(lines, '\n');
    for (StringRef line : lines) {
      if (line == "// -----")
        aliases.clear();
      if (line.trim().starts_with("//"))
        continue;
      if (line.starts_with("#") || line.starts_with("!"))
        aliases += line.str() + "\n"; // what the functions below it may name
      else
        snippet += line.str() + "\n";
      open += ptrdiff_t(line.count('{')) - ptrdiff_t(line.count('}'));
      if (line == "}" && open == 0) {
        snippets.push_back(aliases + snippet);
        snippet.clear();
      }
    }
  }
  return snippets;
}

/// What a lexeme may be replaced by: another of its kind.
enum class Kind { Blank, Number, Word, Value, Type, Attribute, Sign };

struct Lexeme {
  Kind kind;
  std::string text;
};

/// The end of `text[begin...]` up to and including the `>` that closes its first `<`; `begin` where there is none.
size_t closing(StringRef text, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' && text[i - 1] != '-' ? -1 : 0;
    if (depth == 0)
      return text[i] == '>' ? i + 1 : begin;
  }
  return begin;
}

/// The text cut into lexemes, parametrised types and attributes being one each; joined they are the text.
std::vector<Lexeme> lexemes(StringRef text) {
  std::vector<Lexeme> result;
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  auto isBlank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    char c = text[begin];
    Kind kind = c == '%'                                      ? Kind::Value
                : c == '!'                                    ? Kind::Type
                : c == '#'                                    ? Kind::Attribute
                : std::isdigit(static_cast<unsigned char>(c)) ? Kind::Number
                : isBlank(c)                                  ? Kind::Blank
                : isWord(c)                                   ? Kind::Word
                                                              : Kind::Sign;
    end = begin + 1;
    while (kind != Kind::Sign && end < text.size() && (kind == Kind::Blank ? isBlank(text[end]) : isWord(text[end])))
      ++end;
    StringRef word = text.slice(begin, end);
    if (word == "tensor" || word == "i1" || word == "i32" || word == "f16" || word == "f32")
      kind = Kind::Type;
    if (kind == Kind::Type || kind == Kind::Attribute)
      end = std::max(end, closing(text, end));
    result.push_back({kind, text.slice(begin, end).str()});
  }
  return result;
}

/// Makes mutations of the corpus; mutation number i of a seed is always the same text.
class Mutator {
public:
  explicit Mutator(uint64_t seed) : seed(seed), texts(corpus()) {
    for (const std::string &text : texts)
      for (Lexeme &lexeme : lexemes(text))
        pools[static_cast<size_t>(lexeme.kind)].push_back(std::move(lexeme.text));
  }

  bool empty() const { return texts.empty(); }

  std::string mutation(uint64_t index) const {
    std::mt19937_64 random(seed * 1000003 + index);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    std::vector<Lexeme> text = lexemes(texts[below(texts.size())]);
    do
      edit(text, below);
    while (below(3) == 0 && !text.empty());
    std::string joined;
    for (const Lexeme &lexeme : text)
      joined += lexeme.text;
    if (below(8) == 0 && !joined.empty())
      joined[below(joined.size())] = static_cast<char>(below(256));
    return joined;
  }

private:
  template <typename Below> void edit(std::vector<Lexeme> &text, Below &below) const {
    static const char *const odd[] = {"0",
                                      "-1",
                                      "1",
                                      "3",
                                      "4294967296",
                                      "9223372036854775807",
                                      "18446744073709551616",
                                      "?",
                                      "x",
                                      "<",
                                      ">",
                                      "\"",
                                      "dense",
                                      "tensor<f32>",
                                      "vector<4xf32>",
                                      "index",
                                      "i33",
                                      "f80",
                                      "()",
                                      "\xff",
                                      "none",
                                      "^bb1",
                                      "!tile.ptr<i1>",
                                      "#tile"};
    size_t at = below(text.size());
    size_t end = std::min(text.size(), at + 1 + below(6));
    switch (below(10)) {
    case 0:
      text.erase(text.begin() + at, text.begin() + end);
      return;
    case 1: {
      std::vector<Lexeme> copy(text.begin() + at, text.begin() + end);
      text.insert(text.begin() + below(text.size()), copy.begin(), copy.end());
      return;
    }
    case 2:
      text[at].text = odd[below(std::size(odd))];
      return;
    case 3:
      std::swap(text[at], text[below(text.size())]);
      return;
    case 4:
    case 5:
      replaceNumber(text[at].text, below);
      return;
    default: // another of its kind: what parses most often
      const std::vector<std::string> &pool = pools[static_cast<size_t>(text[at].kind)];
      text[at].text = pool[below(pool.size())];
    }
  }

  /// Changes the first number inside a lexeme, a size or a bit width for example, if it has one.
  template <typename Below> static void replaceNumber(std::string &text, Below &below) {
    static const char *const numbers[] = {
        "0", "1", "2", "4", "8", "16", "32", "64", "3", "1048576", "2097152", "4294967295", "9223372036854775807"};
    size_t begin = text.find_first_of("0123456789");
    if (begin == std::string::npos)
      return;
    size_t end = text.find_first_not_of("0123456789", begin);
    text.replace(begin, std::min(end, text.size()) - begin, numbers[below(std::size(numbers))]);
  }

  uint64_t seed;
  std::vector<std::string> texts;
  std::vector<std::string> pools[7]; // by Kind
};

/// A context that keeps the number of errors instead of printing them.
struct Checker {
  Checker() : context(registry(), MLIRContext::Threading::DISABLED), passes(&context) {
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
    passes.addPass(createCanonicalizerPass());
  }

  static const DialectRegistry &registry() {
    static const DialectRegistry dialects = [] {
      DialectRegistry all;
      all.insert<weft::tile::TileDialect, weft::warp::WarpDialect, arith::ArithDialect, math::MathDialect,
                 scf::SCFDialect, func::FuncDialect>();
      return all;
    }();
    return dialects;
  }

  /// What is wrong with the way `text` was taken or refused; empty when nothing is. Sets `accepted`.
  std::string check(const std::string &text, bool &accepted) {
    errors = 0;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    accepted = static_cast<bool>(module);
    if (!accepted)
      return errors ? "" : "refused without an error";
    if (failed(passes.run(*module)))
      return "the canonicalizer failed";
    std::string printed;
    llvm::raw_string_ostream(printed) << *module;
    // MLIR reads the symbol @"" and prints a text that says it is invalid: no dialect of ours can mend that.
    if (StringRef(printed).contains("<<INVALID EMPTY SYMBOL>>"))
      return "";
    OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(printed, ParserConfig(&context));
    return again ? "" : "printed as text that is refused:\n" + printed;
  }

  MLIRContext context;
  PassManager passes;
  unsigned errors = 0;
};

thread_local const std::string *underTest = nullptr;
uint64_t seedUnderTest = 0;

/// Names the text and the seed before the process dies.
void onCrash(int signal) {
  auto put = [](const std::string &text) { (void)!write(STDERR_FILENO, text.data(), text.size()); };
  put("crashed with seed " + std::to_string(seedUnderTest) + " on:\n");
  if (underTest)
    put(*underTest);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

uint64_t numberFrom(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Totals {
  std::atomic<uint64_t> next{0}, accepted{0};
  std::atomic<bool> failed{false};
};

/// Checks mutations until there are no more. A context keeps every type and attribute it ever saw, so that it is
/// replaced now and then.
void work(const Mutator &mutator, uint64_t count, Totals &totals) {
  constexpr uint64_t batch = 500;
  while (!totals.failed) {
    uint64_t begin = totals.next.fetch_add(batch);
    if (begin >= count)
      return;
    Checker checker;
    for (uint64_t i = begin; i < std::min(begin + batch, count); ++i) {
      std::string text = mutator.mutation(i);
      if (weft::findTextHazard(text)) // as every tool and the C interface ask before they parse
        continue;
      underTest = &text;
      bool accepted = false;
      std::string problem = checker.check(text, accepted);
      underTest = nullptr;
      totals.accepted += accepted;
      if (!problem.empty() && !totals.failed.exchange(true))
        ADD_FAILURE() << "mutation " << i << " of seed " << seedUnderTest << ": " << problem << "\n" << text;
    }
  }
}

} // namespace

TEST(ParserFuzz, CorpusIsAccepted) {
  Checker checker;
  std::vector<std::string> texts = corpus();
  ASSERT_GT(texts.size(), 20u);
  for (const std::string &text : texts) {
    bool accepted = false;
    EXPECT_EQ(checker.check(text, accepted), "") << text;
    EXPECT_TRUE(accepted) << text;
  }
}

TEST(ParserFuzz, MutationsDoNotCrash) {
  seedUnderTest = numberFrom("WEFT_TEST_SEED", std::random_device()());
  uint64_t count = numberFrom("WEFT_FUZZ_MUTATIONS", 100000);
  std::printf("seed %llu (repeat with WEFT_TEST_SEED)\n", static_cast<unsigned long long>(seedUnderTest));
  for (int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS})
    std::signal(signal, onCrash);
  Mutator mutator(seedUnderTest);
  ASSERT_FALSE(mutator.empty());
  Totals totals;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] { work(mutator, count, totals); });
  for (std::thread &thread : threads)
    thread.join();
  std::printf("%llu of %llu mutations were still valid\n", static_cast<unsigned long long>(totals.accepted),
              static_cast<unsigned long long>(count));
  // Only valid modules reach the verifiers, the folds and the printer.
  EXPECT_GT(totals.accepted, count / 100);
}
