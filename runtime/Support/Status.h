// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How the runtime and the simulator report what went wrong: a code for programs, a text for people.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace weft {

/// What kind of failure this is. The numbers are those of `weft_status` in weft.h and never change.
enum class StatusCode : int {
  Ok = 0,
  InvalidArgument = 1, ///< the caller passed something that cannot be right
  NotFound = 2,        ///< no such file, entry, kernel or device
  Corrupt = 3,         ///< a library, manifest or PTX that is torn, altered or does not parse
  WrongTarget = 4,     ///< made for a device this is not
  Unsupported = 5,     ///< well formed, but not implemented here
  OutOfMemory = 6,
  DriverError = 7, ///< the CUDA driver refused; the text holds its own words
  Finding = 8,     ///< the simulator found the program at fault
  Internal = 9,    ///< a defect in Weft itself
};

/// The name of a code as it appears in messages, for example "invalid argument".
std::string_view statusName(StatusCode code);

/// A failure: what kind, and a text that says what was expected, what came and what to do.
struct Error {
  StatusCode code;
  std::string message;
};

/// A value, or why there is none.
template <typename T> using Result = std::expected<T, Error>;
/// Success, or why not.
using Status = Result<void>;

/// Shorthand for returning a failure from a function whose result is a `Result`.
inline std::unexpected<Error> failure(StatusCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

} // namespace weft
