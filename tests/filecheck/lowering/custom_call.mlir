// RUN: gradir-opt %s --load %S/Inputs/functions.py -p 'to-structured{target=cpu}' | filecheck %s --check-prefix=LEVEL2
// RUN: gradir-opt %s --load %S/Inputs/functions.py -p 'to-structured{target=cpu},to-buffers,to-loops' | filecheck %s --check-prefix=LEVEL4
// RUN: gradir-opt %s --load %S/Inputs/functions.py -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics -o /dev/null
// RUN: gradir-translate %s --load %S/Inputs/functions.py --to=llvm-ir --threads 1 | filecheck %s --check-prefix=LLVM
// RUN: gradir-run %s --load %S/Inputs/functions.py --entry f --input 2x4xf32=iota | filecheck %s --check-prefix=RESULT

// LEVEL2-DAG:   func.func private @double_0(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> attributes {gradir.kernel = #kernel.library<>, gradir.library = "double", gradir.elements = [f32, f32], gradir.destinations = 1 : i64, gradir.config = {factor = 2 : i64}}
// LEVEL2-DAG:   func.func private @note_0(tensor<2x2xf32>) -> () attributes {gradir.kernel = #kernel.library<>, gradir.library = "note", gradir.elements = [f32], gradir.destinations = 0 : i64, gradir.effects}
// LEVEL2-LABEL: func.func @f(
// LEVEL2:         func.call @double_0(%x, %{{.*}}) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
// LEVEL2:         func.call @note_0(
// LEVEL2:         func.call @note_0(

// A function of a library gets whole buffers: the slice is copied.
// LEVEL4-LABEL: func.func @f(
// LEVEL4:         func.call @double_0(%x, %{{.*}}) : (memref<2x4xf32>, memref<2x4xf32>) -> ()
// LEVEL4:         memref.copy
// LEVEL4:         func.call @note_0(

// LLVM-LABEL: define i32 @f(
// LLVM:         %[[AT:.*]] = getelementptr inbounds i8, ptr %ctx, i64 48
// LLVM:         %[[CALLBACK:.*]] = load ptr, ptr %[[AT]]
// LLVM:         %[[STATUS:.*]] = call i32 %[[CALLBACK]](ptr %ctx, i64 0, ptr %{{.*}})
// LLVM:         icmp eq i32 %[[STATUS]], 0
// LLVM:         ret i32 3

// RESULT: 0{{.*}}3{{.*}}6{{.*}}9
// RESULT: 12{{.*}}15{{.*}}18{{.*}}21
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nd.custom_call @double(%x) {config = {factor = 2 : i64}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nd.custom_call @double(%0) {config = {factor = 5 : i64}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %part = nd.slice %0 start [0, 1] limit [2, 3] : tensor<2x4xf32> -> tensor<2x2xf32>
  nd.custom_call @note(%part) {effects} : (tensor<2x2xf32>) -> ()
  nd.custom_call @note(%part) {effects} : (tensor<2x2xf32>) -> ()
  %2 = nd.add %0, %x : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
