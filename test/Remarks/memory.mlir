// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../Warp/Transforms/stage-operands.mlir --split-input-file --warp-stage-operands --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: weft-opt %S/../Warp/Transforms/order-accesses.mlir --pass-pipeline='builtin.module(func.func(warp-order-accesses))' --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: weft-opt %s --tile-to-warp=target=sm_80 --warp-stage-operands --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: weft-opt %s --weft-tile-to-llvm --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: weft-opt %S/../Warp/Transforms/stage-wgmma.mlir --pass-pipeline='builtin.module(func.func(warp-stage-wgmma))' --split-input-file --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: weft-opt %S/Inputs/layouts.mlir --convert-warp-to-llvm --remarks-filter-missed=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=LAYOUT

// STAGE: remark: [Missed] async-copy | Category:memory | Function=priority | Reason="asynchronous copies have no such cache modifier or eviction priority; threads load pieces of 8 bytes and store them to shared memory"
// STAGE: remark: [Missed] async-copy | Category:memory | Function=other_is_one | Reason="masked elements are other than zero; threads load pieces of 16 bytes and store them to shared memory"
// STAGE: remark: [Missed] async-copy | Category:memory | Function=two_bytes_at_a_time | Reason="no asynchronous copy of the target is of such pieces; threads load pieces of 2 bytes and store them to shared memory"

// WGMMA: remark: [Missed] async-copy | Category:memory | Function=stored | Reason="something else reads the tile of a product too; threads load pieces of 16 bytes and store them to shared memory"

// LAYOUT: remark: [Missed] vector-width | Category:memory | Function=far_apart | Reason="a thread accesses 1 of the 4 elements that one instruction could: the layout gives the thread no more neighbours"
// LAYOUT: remark: [Missed] ldmatrix | Category:products | Function=scattered | Reason="an operand of 16 bits an element is read by plain loads: the tile's layout has no rows of 16 bytes for it"

// ORDER-NOT: Function=own
// ORDER: remark: [Missed] access-order | Category:memory | Function=repeated | Reason="threads wait before it, as another one may have read there: by 'tile.load' of the same array, at addresses that are not known to differ"
// ORDER: remark: [Missed] access-order | Category:memory | Function=two_names | Reason="threads wait before it, as another one may have read there: by 'tile.load' of another argument that may be the same array"
// ORDER-NOT: Function=tiles
// ORDER: remark: [Missed] access-order | Category:memory | Function=overlapping | Reason="threads wait before it, as another one may have written there: by 'tile.store' of the same array, at addresses that are not known to differ"

module attributes {warp.target = "sm_80"} {
  // A tile that the product takes and the sum of its elements too.
  // SHARED: [[#@LINE+7]]:{{[0-9]+}}: remark: [Missed] operand-staging | Category:memory | Function=read_twice | Reason="the tile of a product is read by 'arith.addf' too, so registers hold it on its way"
  func.func @read_twice(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
    %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %i = tile.reshape %r : tensor<1024xi32> -> tensor<32x32xi32>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
    %q = tile.addptr %b, %i : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %x = tile.load %q : tensor<32x32x!tile.ptr<f16>>
    %y = arith.addf %x, %x : tensor<32x32xf16>
    %d = tile.dot %x, %y, %zero : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
    %c = tile.splat %o : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
    %s = tile.addptr %c, %i : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
    tile.store %s, %d : tensor<32x32x!tile.ptr<f32>>
    return
  }
  // Pointers that may begin anywhere.
  // WIDTH: remark: [Missed] vector-width | Category:memory | Function=anywhere | Reason="a thread accesses 1 of the 4 elements that one instruction could: no more are known to be neighbours in memory, and aligned"
  func.func @anywhere(%p: !tile.ptr<f32>) attributes {tile.kernel} {
    %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %q = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %x = tile.load %q : tensor<1024x!tile.ptr<f32>>
    tile.store %q, %x : tensor<1024x!tile.ptr<f32>>
    return
  }
}
