// The larger or smaller of numbers that were widened is found in 16 bits.
// RUN: weft-opt --split-input-file --tile-narrow-extrema %s | FileCheck %s

// A chain is narrow as a whole; so is a number that 16 bits hold, on either side.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[X:.*]]: tensor<64xf16>, %[[Y:.*]]: tensor<64xf16>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<0xFC00> : tensor<64xf16>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf16>
// CHECK: %[[A:.*]] = arith.maxnumf %[[X]], %[[LOW]] : tensor<64xf16>
// CHECK: %[[B:.*]] = arith.maxnumf %[[A]], %[[Y]] : tensor<64xf16>
// CHECK: %[[C:.*]] = arith.minnumf %[[B]], %[[ONE]] : tensor<64xf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[C]]
// CHECK: return %[[WIDE]]
func.func @chain(%x: tensor<64xf16>, %y: tensor<64xf16>) -> tensor<64xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %a = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %b = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %0 = arith.maxnumf %a, %low : tensor<64xf32>
  %1 = arith.maxnumf %0, %b : tensor<64xf32>
  %2 = arith.minnumf %one, %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// NaN goes on where it did.
// CHECK-LABEL: func.func @propagates
// CHECK: arith.maximumf %{{.*}}, %{{.*}} : tensor<64xbf16>
// CHECK: arith.minimumf %{{.*}}, %{{.*}} : tensor<64xbf16>
func.func @propagates(%x: tensor<64xbf16>, %y: tensor<64xbf16>, %z: tensor<64xbf16>) -> tensor<64xf32> {
  %a = arith.extf %x : tensor<64xbf16> to tensor<64xf32>
  %b = arith.extf %y : tensor<64xbf16> to tensor<64xf32>
  %c = arith.extf %z : tensor<64xbf16> to tensor<64xf32>
  %0 = arith.maximumf %a, %b : tensor<64xf32>
  %1 = arith.minimumf %0, %c : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// A number that 16 bits round is no bound of theirs.
// CHECK-LABEL: func.func @rounded
// CHECK: arith.maxnumf %{{.*}}, %{{.*}} : tensor<64xf32>
func.func @rounded(%x: tensor<64xf16>) -> tensor<64xf32> {
  %tenth = arith.constant dense<0.1> : tensor<64xf32>
  %a = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %0 = arith.maxnumf %a, %tenth : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// What is widened for others too, of two types, of 8 bits, or a scalar stays.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: arith.maxnumf %{{.*}}, %{{.*}} : tensor<64xf32>
// CHECK: arith.maxnumf %{{.*}}, %{{.*}} : f32
func.func @stays(%x: tensor<64xf16>, %y: tensor<64xf16>, %z: tensor<64xbf16>, %u: tensor<64xf8E5M2>, %v: tensor<64xf8E5M2>,
                 %s: f16, %t: f16) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, f32) {
  %a = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %b = arith.extf %y : tensor<64xf16> to tensor<64xf32>
  %0 = arith.maxnumf %a, %b : tensor<64xf32>
  %d = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %c = arith.extf %z : tensor<64xbf16> to tensor<64xf32>
  %1 = arith.maxnumf %d, %c : tensor<64xf32>
  %e = arith.extf %u : tensor<64xf8E5M2> to tensor<64xf32>
  %f = arith.extf %v : tensor<64xf8E5M2> to tensor<64xf32>
  %2 = arith.maxnumf %e, %f : tensor<64xf32>
  %g = arith.extf %s : f16 to f32
  %h = arith.extf %t : f16 to f32
  %3 = arith.maxnumf %g, %h : f32
  return %0, %a, %1, %2, %3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, f32
}
