/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/* The static libstdc++ asks for arc4random, the one function of glibc 2.36 in it (std::random_device). With this one,
   hidden in each library, glibc 2.34 is enough. */
#include <stdint.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
  }
  return bits;
}
