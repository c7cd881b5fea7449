/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of libraries as operators of torch, in processes without Python: what torch.export or AOTInductor recorded of
 * a model finds them by their names (docs/Torch.md). libweft_torch.so needs torch's stable C interface alone, of torch
 * 2.10 or newer, which the process has loaded before.
 */
#ifndef WEFT_TORCH_H
#define WEFT_TORCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens the library in directory `path` and defines the operators of its programs, as Python calls them:
 * weft::NAME_KEY_inference for a program, weft::NAME_KEY for its forward with what the backward needs. They run on CUDA
 * tensors on torch's current stream, and on tensors of the CPU on the simulator. The library stays open while the
 * process lasts; one that was loaded before is left as it is. Gives 0; otherwise another number, and writes what went
 * wrong to `message`, ended by 0 and cut to `capacity` bytes.
 */
__attribute__((visibility("default"))) int weft_torch_load(const char *path, char *message, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_TORCH_H */
