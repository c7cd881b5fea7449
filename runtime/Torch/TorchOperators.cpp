// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See weft_torch.h. torch's stable C interface takes kernels as plain functions, which know nothing but their arguments;
// so there is a table of functions, each of which runs the program at its place in the table of programs.
#include "runtime/Torch/Tensors.h"
#include "runtime/Torch/weft_torch.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace weft::torch {
namespace {

/// A program of an opened library, made ready on each device that it has run on.
struct Operator {
  const Library *library;
  std::string program;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Ready>> ready; ///< by device

  Ready &on(const std::string &device) {
    std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<Ready> &found = ready[device];
    if (!found)
      found = std::make_unique<Ready>(*library, device, program);
    return *found;
  }
};

constexpr size_t most = 512;
std::array<std::unique_ptr<Operator>, most> operators;
size_t count = 0;
std::mutex loading;

/// Runs an operator as torch calls it: it owns the arguments, and gives its results in their place.
void run(Operator &called, StableIValue *stack, uint64_t arguments) {
  std::vector<Tensor> inputs;
  for (uint64_t i = 0; i < arguments; ++i)
    inputs.emplace_back(handleOf(stack[i]));
  std::vector<Tensor> outputs = called.on(deviceOf(inputs)).run(std::move(inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    stack[i] = valueOf(outputs[i].release());
}

/// What torch calls.
template <size_t number> void boxed(StableIValue *stack, uint64_t arguments, uint64_t) {
  run(*operators[number], stack, arguments);
}

using Boxed = void (*)(StableIValue *, uint64_t, uint64_t);
template <size_t... numbers> constexpr std::array<Boxed, most> tableOf(std::index_sequence<numbers...>) {
  return {boxed<numbers>...};
}
constexpr std::array<Boxed, most> table = tableOf(std::make_index_sequence<most>());

/// A name that torch's schemas allow, as python/weft/runtime/operators.py makes it.
std::string identifier(std::string name) {
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return !name.empty() && isalpha(static_cast<unsigned char>(name[0])) ? name : "p" + name;
}

/// The schema of an operator, with the inputs' names as python/weft/runtime/operators.py gives them.
std::string schemaOf(const std::string &called, const nlohmann::json &program) {
  std::string taken, given;
  for (size_t i = 0; i < program.at("inputs").size(); ++i)
    taken += (i ? ", Tensor " : "Tensor ") + identifier(program.at("inputs")[i].at("name")) + "_" + std::to_string(i);
  size_t outputs = program.at("outputs").size();
  for (size_t i = 0; i < outputs; ++i)
    given += i ? ", Tensor" : "Tensor";
  return called + "(" + taken + ") -> " + (outputs == 1 ? given : "(" + given + ")");
}

bool endsIn(const std::string &text, const std::string &end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What an operator is called: the program, and the first twelve digits of the library's digest.
std::string calledAs(const std::string &program, const std::string &digest) {
  std::string key = "_" + digest.substr(std::strlen("sha256:"), 12), forward = ".forward";
  if (endsIn(program, forward))
    return identifier(program.substr(0, program.size() - forward.size())) + key;
  return identifier(program) + key + "_inference";
}

void define(const Library &library, const nlohmann::json &program, const std::string &digest) {
  std::string name = program.at("name"), called = calledAs(name, digest);
  if (count == most)
    throw std::runtime_error("expected at most " + std::to_string(most) + " programs in a process");
  operators[count] = std::make_unique<Operator>();
  operators[count]->library = &library;
  operators[count]->program = name;
  TorchLibraryHandle fragment = nullptr;
  check(aoti_torch_library_init_fragment("weft", __FILE__, __LINE__, &fragment));
  check(aoti_torch_library_def(fragment, schemaOf(called, program).c_str()));
  for (const char *key : {"CPU", "CUDA"}) {
    TorchLibraryHandle kernels = nullptr;
    check(aoti_torch_library_init_impl("weft", key, __FILE__, __LINE__, &kernels));
    check(aoti_torch_library_impl(kernels, called.c_str(), table[count]));
  }
  ++count; // the definitions last as long as the process, and so do their handles
}

void load(const std::string &path) {
  std::lock_guard<std::mutex> lock(loading);
  static std::vector<std::unique_ptr<Library>> libraries;
  static std::set<std::string> known;
  auto library = std::make_unique<Library>(path);
  nlohmann::json manifest = nlohmann::json::parse(library->manifest());
  std::string digest = manifest.at("digest");
  if (!known.insert(digest).second)
    return;
  libraries.push_back(std::move(library));
  for (const nlohmann::json &program : manifest.value("programs", nlohmann::json::array())) {
    std::string name = program.at("name");
    if (!endsIn(name, ".backward") && !endsIn(name, ".tangent"))
      define(*libraries.back(), program, digest);
  }
}

} // namespace
} // namespace weft::torch

int weft_torch_load(const char *path, char *message, size_t capacity) {
  try {
    weft::torch::load(path ? path : "");
    return 0;
  } catch (const std::exception &error) {
    if (message && capacity) {
      std::strncpy(message, error.what(), capacity - 1);
      message[capacity - 1] = 0;
    }
    return 1;
  }
}
