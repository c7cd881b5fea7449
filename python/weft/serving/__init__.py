# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft's decoding as servers of models call it.

weft.serving.vllm         a backend of vLLM, which finds it by its entry point: --attention-backend CUSTOM
weft.serving.flashinfer   paged decoding by FlashInfer's arguments, as its benchmark's traces call it
"""
