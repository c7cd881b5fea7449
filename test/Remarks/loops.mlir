// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../Warp/Transforms/pipeline.mlir --split-input-file --warp-pipeline --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: sed s/TARGET/sm_86/ %S/../Warp/Transforms/pipeline-stages.mlir | weft-opt --warp-pipeline --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: weft-opt %S/../Warp/Transforms/load-ahead.mlir --warp-load-ahead --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOADS
// RUN: weft-opt %S/../Warp/Transforms/stage-loads.mlir --split-input-file --warp-stage-loads --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAGED
// RUN: weft-opt %S/Inputs/loops.mlir --warp-pipeline --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=KINDS

// KINDS: remark: [Missed] pipelining | Category:loops | Function=written | Reason="the copy is not started iterations ahead: the loop may write what is copied"
// KINDS: remark: [Missed] pipelining | Category:loops | Function=outer | Reason="the copy is not started iterations ahead: its loop has another loop inside"

// CHECK: remark: [Missed] pipelining | Category:loops | Function=one_stage | Reason="the copy is not started iterations ahead: the schedule has one stage"
// CHECK: remark: [Missed] pipelining | Category:loops | Function=table_that_changes | Reason="the copy is not started iterations ahead: its address needs what the loop computes before"
// CHECK: remark: [Missed] pipelining | Category:loops | Function=shared_commit | Reason="the copy is not started iterations ahead: several copies of the loop share a commit"
// CHECK-COUNT-2: remark: [Missed] pipelining | Category:loops | Function=filled_twice | Reason="the copy is not started iterations ahead: its tile is not read and freed in one block"

// STAGES: remark: [Missed] pipeline-stages | Category:loops | Function=alone | Reason="a block's shared memory holds 3 of the 4 stages that the schedule asks for"
// STAGES: remark: [Missed] pipeline-stages | Category:loops | Function=blocks | Reason="with 3 stages of the 4 that the schedule asks for a multiprocessor holds more blocks, and more tiles are under way"

// LOADS: remark: [Missed] pipelining | Category:loops | Function=written | Reason="the load is not made an iteration ahead: the loop may write what is loaded"
// LOADS: remark: [Missed] pipelining | Category:loops | Function=volatile | Reason="the load is not made an iteration ahead: it is volatile"
// LOADS: remark: [Missed] pipelining | Category:loops | Function=table_of_tables | Reason="the load is not made an iteration ahead: its address needs what the loop loads or computes before"
// LOADS: remark: [Missed] pipelining | Category:loops | Function=full | Reason="the load is not made an iteration ahead: the loop's registers have no room for its value"

// STAGED: remark: [Missed] pipelining | Category:loops | Function=no_room | Reason="the load is not copied iterations ahead: shared memory has no room for 12 stages of it"
