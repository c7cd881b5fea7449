// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Runs every mechanism of a PTX library, forward and backward, and checks results and gradients against what
// examples/11_library.py --vectors wrote: inputs, and a float64 reference with the error that is allowed. No Python, no
// compiler.
//
//   mechanisms LIBRARY VECTORS [DEVICE]      DEVICE: cuda:0, simulator, ...; by default what weft_default_device says
#include <weft.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

namespace fs = std::filesystem;

/// Numbers on disk: of float16 where they are given, of float32 where they are expected.
struct Vector {
  double limit = 0; // the largest error allowed
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

/// What VECTORS has of one mechanism, by the tensors' names.
struct Vectors {
  std::map<std::string, Vector> given, expected;
};

static std::vector<char> contents(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads NAME.txt, of lines KIND TENSOR LIMIT RANK SIZES, and the files NAME.TENSOR beside it.
static Vectors read(const fs::path &folder, const std::string &name) {
  Vectors vectors;
  std::ifstream index(folder / (name + ".txt"));
  for (std::string line; std::getline(index, line);) {
    std::istringstream words(line);
    std::string kind, tensor;
    Vector vector;
    size_t rank = 0;
    words >> kind >> tensor >> vector.limit >> rank;
    vector.shape.resize(rank);
    for (int64_t &size : vector.shape)
      words >> size;
    if (!words)
      throw std::runtime_error("cannot read '" + line + "' of " + name + ".txt");
    vector.bytes = contents(folder / (name + "." + tensor));
    (kind == "given" ? vectors.given : vectors.expected)[tensor] = std::move(vector);
  }
  return vectors;
}

static float fromHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? std::ldexp(1024.f + fraction, exponent - 25)
                              : std::ldexp(float(fraction), -24);
  return bits >> 15 ? -size : size;
}

static size_t bytesOf(const weft_tensor &tensor) {
  size_t bytes = tensor.element == WEFT_I64                                   ? 8
                 : tensor.element == WEFT_FP32 || tensor.element == WEFT_I32  ? 4
                 : tensor.element == WEFT_FP16 || tensor.element == WEFT_BF16 ? 2
                                                                              : 1;
  for (int axis = 0; axis < tensor.rank; ++axis)
    bytes *= tensor.shape[axis];
  return bytes;
}

/// A tensor and the memory that it lies in.
struct Tensor {
  weft::Buffer memory;
  weft_tensor tensor;
};

/// Runs a program on tensors; gives its outputs by name, and in order.
static std::vector<Tensor> run(const weft::Program &program, const weft::Device &device, weft_stream stream,
                               const std::vector<weft_tensor> &inputs) {
  auto [described, workspaceBytes] = program.require(inputs);
  weft::Buffer workspace(device, workspaceBytes);
  std::vector<Tensor> outputs;
  for (weft_tensor &output : described) {
    weft::Buffer memory(device, bytesOf(output));
    memory.fill(0xff, stream); // NaN: an element that is not written shows
    output.address = memory.address();
    outputs.push_back({std::move(memory), output});
  }
  program.run(inputs, described, &workspace, stream);
  return outputs;
}

/// The largest error of an output; infinite for NaN and for one of another length.
static double largestError(const Tensor &output, const Vector &expected, weft_stream stream) {
  std::vector<float> wanted(expected.bytes.size() / sizeof(float)), got;
  std::memcpy(wanted.data(), expected.bytes.data(), expected.bytes.size());
  if (output.tensor.element == WEFT_FP32)
    got = output.memory.to<float>(stream);
  else
    for (uint16_t bits : output.memory.to<uint16_t>(stream))
      got.push_back(fromHalf(bits));
  if (got.size() != wanted.size())
    return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double error = std::abs(double(got[i]) - wanted[i]);
    worst = error <= worst ? worst : std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

/// Prints the largest error of each output that something is expected of, and says whether all are small enough.
static bool check(const weft::Program &program, const std::vector<Tensor> &outputs, const Vectors &vectors,
                  std::set<std::string> &checked, weft_stream stream) {
  bool right = true;
  std::vector<weft_tensor_info> facts = program.outputs();
  for (size_t i = 0; i < facts.size(); ++i) {
    auto expected = vectors.expected.find(facts[i].name);
    if (expected == vectors.expected.end())
      continue;
    double error = largestError(outputs[i], expected->second, stream);
    std::cout << "  " << facts[i].name << " " << error << " of " << expected->second.limit << "\n";
    right = right && error <= expected->second.limit;
    checked.insert(facts[i].name);
  }
  return right;
}

/// Runs NAME.forward on what is given and NAME.backward on that, what forward saved and the results' gradients.
static bool runMechanism(const weft::Library &library, const weft::Device &device, const std::string &name,
                         const Vectors &vectors) {
  weft::Program forward(library, device, name + ".forward"), backward(library, device, name + ".backward");
  std::cout << name << " for " << forward.target() << " on " << device.name() << ", largest errors:\n";
  weft::Stream stream(device);
  std::vector<weft::Buffer> memory;
  auto given = [&](const weft_tensor_info &fact) {
    const Vector &vector = vectors.given.at(fact.name);
    memory.emplace_back(device, vector.bytes);
    return weft_tensor_contiguous(memory.back().address(), weft_element(fact.element), int32_t(vector.shape.size()),
                                  vector.shape.data());
  };
  std::vector<weft_tensor> inputs;
  for (const weft_tensor_info &fact : forward.inputs())
    inputs.push_back(given(fact));
  std::vector<Tensor> results = run(forward, device, stream, inputs);
  // Of what forward gives, results and more, backward takes what it names.
  std::map<std::string, weft_tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs[forward.outputs()[i].name] = results[i].tensor;
  std::vector<weft_tensor_info> facts = backward.inputs();
  for (size_t i = inputs.size(); i < facts.size(); ++i) {
    auto output = outputs.find(facts[i].name);
    inputs.push_back(output != outputs.end() ? output->second : given(facts[i]));
  }
  std::vector<Tensor> gradients = run(backward, device, stream, inputs);
  std::set<std::string> checked;
  bool right = check(forward, results, vectors, checked, stream);
  right = check(backward, gradients, vectors, checked, stream) && right;
  return right && !checked.empty() && checked.size() == vectors.expected.size();
}

int main(int count, char **arguments) {
  if (count != 3 && count != 4) {
    std::cerr << "usage: mechanisms LIBRARY VECTORS [DEVICE]\n";
    return 2;
  }
  try {
    weft::Library library(arguments[1]);
    weft::Device device(count == 4 ? arguments[3] : "");
    int mechanisms = 0, wrong = 0;
    for (const std::string &name : library.programs()) {
      if (!fs::exists(fs::path(arguments[2]) / (name + ".txt")))
        continue; // .forward and .backward of another
      ++mechanisms;
      wrong += !runMechanism(library, device, name, read(arguments[2], name));
    }
    std::cout << mechanisms - wrong << " of " << mechanisms << " mechanisms right\n";
    return mechanisms && !wrong ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const weft::Exception &error) {
    std::cerr << "mechanisms: " << weft_status_name(error.status()) << ": " << error.what() << "\n";
  } catch (const std::exception &error) {
    std::cerr << "mechanisms: " << error.what() << "\n";
  }
  return EXIT_FAILURE;
}
