// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The translation unit that shared precompiled headers are compiled with.
