// RUN: gradir-opt %s -p nd-simplify | filecheck %s
// RUN: gradir-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @neutral(
// CHECK-NEXT: return %x, %x, %x, %x, %i, %x : tensor<4xf32>
func.func @neutral(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) {
  %one = nd.constant splat(1.0 : f32) : tensor<4xf32>
  %zero = nd.constant splat(0.0 : f32) : tensor<4xf32>
  %minus = nd.constant splat(-0.0 : f32) : tensor<4xf32>
  %izero = nd.constant splat(0 : i32) : tensor<4xi32>
  %0 = nd.mul %x, %one : tensor<4xf32>
  %1 = nd.div %x, %one : tensor<4xf32>
  %2 = nd.sub %x, %zero : tensor<4xf32>
  %3 = nd.add %minus, %x : tensor<4xf32>
  %4 = nd.add %i, %izero : tensor<4xi32>
  %5 = nd.pow %x, %one : tensor<4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>
}

// x + 0 is +0 at x = -0; x - x and x * 0 are NaN at infinities; relu has its own derivative at 0; 0 - x is not -x at x = +0.
// CHECK-LABEL: func.func @not_identities(
// CHECK: nd.add %x
// CHECK: nd.sub %x, %x
// CHECK: nd.mul %x
// CHECK: nd.sub %{{.*}}, %x
// CHECK: nd.max %x
// CHECK: nd.reduce_sum
func.func @not_identities(%x: tensor<4xf32>, %y: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  %zero = nd.constant splat(0.0 : f32) : tensor<4xf32>
  %0 = nd.add %x, %zero : tensor<4xf32>
  %1 = nd.sub %x, %x : tensor<4xf32>
  %2 = nd.mul %x, %zero : tensor<4xf32>
  %3 = nd.sub %zero, %x : tensor<4xf32>
  %4 = nd.max %x, %zero : tensor<4xf32>
  %5 = nd.reduce_sum %y dims [0] : tensor<1xf32> -> tensor<f32>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @signs(
// CHECK-NEXT: %[[SUM:.*]] = nd.add %x, %y
// CHECK-NEXT: %[[DIFF:.*]] = nd.sub %x, %y
// CHECK-NEXT: %[[PROD:.*]] = nd.mul %x, %y
// CHECK-NEXT: %[[ABS:.*]] = nd.abs %x
// CHECK-NEXT: return %x, %[[SUM]], %[[DIFF]], %[[PROD]], %[[ABS]]
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %nx = nd.neg %x : tensor<4xf32>
  %ny = nd.neg %y : tensor<4xf32>
  %0 = nd.neg %nx : tensor<4xf32>
  %1 = nd.sub %x, %ny : tensor<4xf32>
  %2 = nd.add %x, %ny : tensor<4xf32>
  %3 = nd.mul %nx, %ny : tensor<4xf32>
  %4 = nd.abs %nx : tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @strong(
// CHECK-DAG: %[[ZERO:.*]] = nd.constant splat(0.0{{.*}} : f32)
// CHECK-DAG: %[[TWO:.*]] = nd.constant splat(2.0{{.*}} : f32)
// CHECK: %[[M:.*]] = nd.mul %x, %[[TWO]]
// CHECK-NEXT: %[[MASK:.*]] = nd.convert %p
// CHECK-NEXT: %[[KEPT:.*]] = nd.mul_strong %x, %[[MASK]]
// CHECK-NEXT: %[[FINITE:.*]] = nd.mul %[[MASK]], %[[MASK]]
// CHECK-NEXT: return %[[ZERO]], %x, %[[M]], %[[KEPT]], %[[FINITE]]
func.func @strong(%x: tensor<4xf32>, %p: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = nd.constant splat(0.0 : f32) : tensor<4xf32>
  %one = nd.constant splat(1.0 : f32) : tensor<4xf32>
  %two = nd.constant splat(2.0 : f32) : tensor<4xf32>
  %0 = nd.mul_strong %x, %zero : tensor<4xf32>
  %1 = nd.mul_strong %one, %x : tensor<4xf32>
  %2 = nd.mul_strong %x, %two : tensor<4xf32>
  %mask = nd.convert %p : tensor<4xi1> -> tensor<4xf32>
  %3 = nd.mul_strong %x, %mask : tensor<4xf32>
  %4 = nd.mul_strong %mask, %mask : tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @numbers(
// CHECK-NEXT: %[[Q:.*]] = nd.constant splat(2.500000e-01 : f32)
// CHECK-NEXT: %[[DIV:.*]] = nd.mul %x, %[[Q]]
// CHECK-NEXT: %[[SQUARE:.*]] = nd.mul %x, %x
// CHECK-NEXT: %[[THREE:.*]] = nd.constant splat(3.0{{.*}} : f32)
// CHECK-NEXT: %[[THIRD:.*]] = nd.div %x, %[[THREE]]
// CHECK-NEXT: return %[[DIV]], %[[SQUARE]], %[[THIRD]]
func.func @numbers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %four = nd.constant splat(4.0 : f32) : tensor<4xf32>
  %0 = nd.div %x, %four : tensor<4xf32>
  %two = nd.constant splat(2.0 : f32) : tensor<4xf32>
  %1 = nd.pow %x, %two : tensor<4xf32>
  %three = nd.constant splat(3.0 : f32) : tensor<4xf32>
  %2 = nd.div %x, %three : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @select(
// CHECK-NEXT: %[[S:.*]] = nd.select %p, %y, %x
// CHECK-NEXT: return %x, %y, %x, %[[S]]
func.func @select(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %true = nd.constant splat(true) : tensor<4xi1>
  %0 = nd.select %true, %x, %y : tensor<4xf32>
  %false = nd.not %true : tensor<4xi1>
  %1 = nd.select %false, %x, %y : tensor<4xf32>
  %2 = nd.select %p, %x, %x : tensor<4xf32>
  %np = nd.not %p : tensor<4xi1>
  %3 = nd.select %np, %x, %y : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @convert(
// CHECK-NEXT: %[[BF:.*]] = nd.convert %x : tensor<4xf32> -> tensor<4xbf16>
// CHECK-NEXT: %[[BACK:.*]] = nd.convert %[[BF]] : tensor<4xbf16> -> tensor<4xf32>
// CHECK-NEXT: return %x, %x, %[[BACK]]
func.func @convert(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = nd.convert %x : tensor<4xf32> -> tensor<4xf32>
  %1 = nd.convert %x : tensor<4xf32> -> tensor<4xf64>
  %2 = nd.convert %1 : tensor<4xf64> -> tensor<4xf32>
  %3 = nd.convert %x : tensor<4xf32> -> tensor<4xbf16>
  %4 = nd.convert %3 : tensor<4xbf16> -> tensor<4xf32>
  return %0, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @bits(
// CHECK-NEXT: %[[NE:.*]] = nd.compare ne, %x, %y
// CHECK-NEXT: %[[LT:.*]] = nd.compare lt, %x, %y
// CHECK-NEXT: %[[GE:.*]] = nd.not %[[LT]]
// CHECK-NEXT: return %i, %i, %[[NE]], %[[GE]]
func.func @bits(%i: tensor<4xi32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>) {
  %ones = nd.constant splat(-1 : i32) : tensor<4xi32>
  %0 = nd.and %i, %ones : tensor<4xi32>
  %1 = nd.or %i, %i : tensor<4xi32>
  %eq = nd.compare eq, %x, %y : tensor<4xf32>
  %2 = nd.not %eq : tensor<4xi1>
  %lt = nd.compare lt, %x, %y : tensor<4xf32>
  %3 = nd.not %lt : tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>
}

// CHECK-LABEL: func.func @constants(
// CHECK-NEXT: %[[E:.*]] = nd.constant splat(5.0{{.*}} : f32) : tensor<1000xf32>
// CHECK-NEXT: %[[T:.*]] = nd.constant dense<{{\[\[}}1, 3], [2, 4]]> : tensor<2x2xi32>
// CHECK-NEXT: return %[[E]], %[[T]]
func.func @constants() -> (tensor<1000xf32>, tensor<2x2xi32>) {
  %two = nd.constant splat(2.0 : f32) : tensor<1000xf32>
  %three = nd.constant splat(3.0 : f32) : tensor<1000xf32>
  %0 = nd.add %two, %three : tensor<1000xf32>
  %m = nd.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %1 = nd.transpose %m perm [1, 0] : tensor<2x2xi32> -> tensor<2x2xi32>
  return %0, %1 : tensor<1000xf32>, tensor<2x2xi32>
}

// CHECK-LABEL: func.func @relu_stays(
// CHECK-NEXT: %[[R:.*]] = nd.relu %x
// CHECK-NEXT: return %[[R]]
func.func @relu_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nd.relu %x : tensor<4xf32>
  %1 = nd.relu %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
