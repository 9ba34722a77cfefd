// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A resource has the type of the constant.

func.func @f() {
  // expected-error@+1 {{types differ: resource c_e56c4f88237e745b has tensor<20xf32>, result has tensor<21xf32>}}
  %0 = nd.constant resource(c_e56c4f88237e745b) : tensor<21xf32>
  return
}

{-#
  dialect_resources: {
    nd: {
      c_e56c4f88237e745b: "float32 20 AAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAABAQQAAUEEAAGBBAABwQQAAgEEAAIhBAACQQQAAmEE="
    }
  }
#-}
