// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/Status.h"

std::string_view weft::statusName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::Corrupt:
    return "corrupt";
  case StatusCode::WrongTarget:
    return "wrong target";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::OutOfMemory:
    return "out of memory";
  case StatusCode::DriverError:
    return "driver error";
  case StatusCode::Finding:
    return "finding";
  case StatusCode::Internal:
    return "internal error";
  }
  return "unknown";
}
