// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s

#b = #warp.layout<[2], offset = [[1]]>

// The added warps come behind those of the schedule: all of a warpgroup give registers back, one runs the program. Barriers
// count who takes part, and say for the others which one they are.
// CHECK-LABEL: llvm.func @roles
// CHECK-SAME: nvvm.minctasm = 1
// CHECK-SAME: nvvm.reqntid = array<i32: 384>
// CHECK-DAG: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384>
// CHECK: %[[BELOW:.*]] = llvm.icmp "ult" %[[TID]], %{{.*}} : i32
// CHECK: llvm.cond_br %[[BELOW]], ^[[OTHERS:bb[0-9]+]], ^[[PRODUCERS:bb[0-9]+]]
// CHECK: ^[[PRODUCERS]]:
// CHECK: "setmaxnreg.dec.sync.aligned.u32 24;"
// CHECK: llvm.cond_br %{{.*}}, ^[[ONE:bb[0-9]+]], ^[[END:bb[0-9]+]]
// CHECK: ^[[ONE]]:
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; @!done bra again; }"
// CHECK: llvm.br ^[[END]]
// CHECK: ^[[END]]:
// CHECK-NEXT: llvm.return
// CHECK: ^[[OTHERS]]:
// CHECK: "setmaxnreg.inc.sync.aligned.u32 240;"
// CHECK: "@$1 mbarrier.init.shared.b64 [$0], 1;"
// CHECK: "@$1 mbarrier.init.shared.b64 [$0], 8;"
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$1 mbarrier.arrive.shared.b64 _, [$0];"
// CHECK-NOT: nvvm.bar.warp.sync
// CHECK: "@$1 mbarrier.arrive.shared.b64 _, [$0];"
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads
// CHECK-COUNT-2: "@$1 mbarrier.inval.shared.b64 [$0];"
module attributes {warp.target = "sm_90a"} {
  func.func @roles(%parity: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    warp.producer warps = 4 registers = 24 others = 240 {
      %inner = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 2xi64, #b>
      %to = warp.stage %inner[%c0] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
      warp.barrier {withProducer}
      warp.mbarrier_wait %to, %parity {index = 1 : i64} : !warp.shared<2xi64, #b>
    }
    %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    %full = warp.stage %ring[%c0] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
    warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
    warp.mbarrier_arrive %full {index = 1 : i64, together} : !warp.shared<2xi64, #b>
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}

// -----

// A barrier for each warpgroup, behind the two of blocks with roles, at which it and the one before it meet.
// CHECK-LABEL: llvm.func @turns
// CHECK: llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: %[[LAST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK: llvm.select
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$1 bar.arrive $0, 256;", "r,b,~{memory}" %{{.*}}, %[[LAST]]
// CHECK: "bar.sync $0, 256;", "r,~{memory}"
// CHECK: "bar.arrive $0, 256;", "r,~{memory}"
// CHECK: "@$1 bar.sync $0, 256;", "r,b,~{memory}"
module attributes {warp.target = "sm_90a"} {
  func.func @turns() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    warp.producer warps = 4 registers = 24 others = 240 {
    }
    warp.turn_pass {last}
    warp.turn_wait
    warp.turn_pass
    warp.turn_wait {first}
    return
  }
}
