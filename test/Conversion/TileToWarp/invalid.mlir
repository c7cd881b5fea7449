// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --tile-to-warp

// expected-error@+1 {{expected the module attribute 'warp.target', but found none}}
module {
  func.func @no_target() attributes {tile.kernel} {
    func.return
  }
}

// -----

// expected-error@+2 {{unknown target 'sm_12'}}
// expected-note@+1 {{the targets are 'sm_80' 'sm_90a'}}
module attributes {warp.target = "sm_12"} {
  func.func @unknown_target() attributes {tile.kernel} {
    func.return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @sizes_that_are_no_powers_of_two(%x: f32) attributes {tile.kernel} {
    // expected-error@+1 {{expected sizes that are powers of two, but got 'tensor<80xf32>'; run -tile-split-sizes first}}
    %a = tile.splat %x : f32 -> tensor<80xf32>
    func.return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @inner_size(%x: i8) attributes {tile.kernel} {
    %a = tile.splat %x : i8 -> tensor<16x16xi8>
    %zero = arith.constant dense<0> : tensor<16x16xi32>
    // expected-error@+2 {{expected a product of 'i8' operands to have an inner size of at least 32, but got 16}}
    // expected-note@+1 {{make the inner block size larger}}
    %d = tile.dot %a, %a, %zero : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
    func.return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @other_control_flow(%n: i32) attributes {tile.kernel} {
    %i = arith.index_cast %n : i32 to index
    // expected-error@+1 {{expected control flow by 'scf.for', 'scf.while' or 'scf.if', but got 'scf.index_switch'}}
    scf.index_switch %i
    default {
      scf.yield
    }
    func.return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  // expected-error@+1 {{expected a kernel of one block, with control flow by 'scf' ops}}
  func.func @blocks() attributes {tile.kernel} {
    cf.br ^end
  ^end:
    func.return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @no_rule(%x: f32) attributes {tile.kernel} {
    // expected-error@+1 {{expected an op on tensors that the tile dialect or element-wise arithmetic provides, but got 'tensor.splat'}}
    %t = "tensor.splat"(%x) : (f32) -> tensor<16xf32>
    func.return
  }
}
