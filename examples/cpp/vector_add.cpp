// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Opens a PTX library, says what is inside, runs its vector addition and checks the sum. No Python, no compiler.
//
//   vector_add LIBRARY [DEVICE]      DEVICE: cuda:0, simulator, ...; by default what weft_default_device says
#include <weft.hpp>

#include <cstdlib>
#include <iostream>
#include <random>

static void describe(const weft::Library &library) {
  for (const std::string &kernel : library.kernels()) {
    std::cout << kernel << "(";
    const char *separator = "";
    for (const auto &[name, type] : library.arguments(kernel)) {
      std::cout << separator << name << ": " << type;
      separator = ", ";
    }
    std::cout << ")\n";
    for (const weft_variant_info &variant : library.variants(kernel))
      std::cout << "  " << variant.target << ": " << variant.num_warps << " warps, " << variant.shared_bytes
                << " bytes of shared memory\n";
  }
}

/// Elements that one program of the kernel handles: its BLOCK constant, as the manifest has it.
static int blockOf(const weft::Library &library) {
  const std::string manifest = library.manifest(), key = "\"BLOCK\":";
  size_t at = manifest.find(key);
  if (at == std::string::npos)
    throw std::runtime_error("expected a kernel with a constant 'BLOCK'");
  return std::stoi(manifest.substr(at + key.size()));
}

static bool addAndCheck(const weft::Library &library, const weft::Device &device, int n) {
  std::vector<float> x(n), y(n);
  std::mt19937 random(std::random_device{}());
  std::normal_distribution<float> normal;
  for (int i = 0; i < n; ++i) {
    x[i] = normal(random);
    y[i] = normal(random);
  }
  weft::Buffer onX(device, x), onY(device, y), onZ(device, n * sizeof(float));
  weft::Stream stream(device);
  uint32_t block = blockOf(library);
  library.launch(device, library.kernels().at(0), weft::Extent{(n + block - 1) / block}, {onX, onY, onZ, n}, stream);
  device.synchronize(stream);
  std::vector<float> z = onZ.to<float>(stream);
  for (int i = 0; i < n; ++i)
    if (z[i] != x[i] + y[i]) {
      std::cerr << "n = " << n << ": element " << i << " is " << z[i] << ", not " << x[i] + y[i] << "\n";
      return false;
    }
  std::cout << "vector add, n = " << n << " on " << device.name() << " (" << device.model()
            << "): right, bit for bit\n";
  return true;
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: vector_add LIBRARY [DEVICE]\n";
    return 2;
  }
  try {
    weft::Library library(arguments[1]);
    describe(library);
    weft::Device device(count == 3 ? arguments[2] : "");
    for (int n : {1, 1000, 98432})
      if (!addAndCheck(library, device, n))
        return EXIT_FAILURE;
    return EXIT_SUCCESS;
  } catch (const weft::Exception &error) {
    std::cerr << "vector_add: " << weft_status_name(error.status()) << ": " << error.what() << "\n";
  } catch (const std::exception &error) {
    std::cerr << "vector_add: " << error.what() << "\n";
  }
  return EXIT_FAILURE;
}
