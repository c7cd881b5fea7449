// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The translation unit that the shared precompiled header is compiled with.
