// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Runs the program `causal` of a PTX library and checks it against the formula. No Python, no compiler.
//
//   attention LIBRARY [DEVICE]      DEVICE: cuda:0, simulator, ...; by default what weft_default_device says
#include <weft.hpp>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>

/// Softmax attention of one head in double precision: row n attends to keys 0 .. n.
static std::vector<double> reference(const float *q, const float *k, const float *v, int length, int size) {
  std::vector<double> result(length * size);
  for (int n = 0; n < length; ++n) {
    std::vector<double> weights(n + 1);
    double most = -INFINITY, sum = 0;
    for (int m = 0; m <= n; ++m) {
      for (int d = 0; d < size; ++d)
        weights[m] += double(q[n * size + d]) * k[m * size + d] / std::sqrt(size);
      most = std::max(most, weights[m]);
    }
    for (double &weight : weights)
      sum += weight = std::exp(weight - most);
    for (int m = 0; m <= n; ++m)
      for (int d = 0; d < size; ++d)
        result[n * size + d] += weights[m] / sum * v[m * size + d];
  }
  return result;
}

static void describe(const weft::Program &program) {
  for (const weft_tensor_info &input : program.inputs()) {
    std::cout << input.name << ": " << weft_element_name(input.element) << "[";
    for (int axis = 0; axis < input.rank; ++axis)
      std::cout << (axis ? ", " : "") << input.dims[axis];
    std::cout << "]\n";
  }
}

/// Runs on random tensors [1, heads, length, 64] and gives the largest error.
static double run(const weft::Program &program, const weft::Device &device, int heads, int length) {
  constexpr int size = 64;
  std::mt19937 random(std::random_device{}());
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> host(3, std::vector<float>(heads * length * size));
  std::vector<weft::Buffer> memory;
  std::vector<weft_tensor> inputs;
  for (std::vector<float> &values : host) {
    for (float &value : values)
      value = normal(random);
    memory.emplace_back(device, values);
    inputs.push_back(weft::tensor(memory.back(), WEFT_FP32, {1, heads, length, size}));
  }
  auto [outputs, workspaceBytes] = program.require(inputs);
  weft::Buffer y(device, host[0].size() * sizeof(float)), workspace(device, workspaceBytes);
  outputs.at(0).address = y.address();
  weft::Stream stream(device);
  program.run(inputs, outputs, &workspace, stream);
  std::vector<float> got = y.to<float>(stream);
  double worst = 0;
  for (int head = 0; head < heads; ++head) {
    size_t at = size_t(head) * length * size;
    std::vector<double> exact = reference(&host[0][at], &host[1][at], &host[2][at], length, size);
    for (size_t i = 0; i < exact.size(); ++i)
      worst = std::max(worst, std::abs(got[at + i] - exact[i]));
  }
  return worst;
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: attention LIBRARY [DEVICE]\n";
    return 2;
  }
  try {
    weft::Library library(arguments[1]);
    weft::Device device(count == 3 ? arguments[2] : "");
    weft::Program program(library, device, "causal");
    describe(program);
    for (int length : {1, 113, 256}) {
      double error = run(program, device, 2, length);
      std::cout << "causal attention, N = " << length << " on " << device.name() << ": largest error " << error << "\n";
      if (!(error < 1e-5))
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
  } catch (const weft::Exception &error) {
    std::cerr << "attention: " << weft_status_name(error.status()) << ": " << error.what() << "\n";
  } catch (const std::exception &error) {
    std::cerr << "attention: " << error.what() << "\n";
  }
  return EXIT_FAILURE;
}
