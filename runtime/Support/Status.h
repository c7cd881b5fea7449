// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How the runtime and the simulator report what went wrong: a code for programs, a text for people.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

namespace detail {
/// Calls `function` on the value of `result`, or on nothing for a Result<void>.
template <typename T, typename Function, typename R> decltype(auto) invokeOn(Function &function, R &&result) {
  if constexpr (std::is_void_v<T>)
    return function();
  else
    return function(*std::forward<R>(result));
}
} // namespace detail

/// A value, or why there is none: std::expected, with the two monadic operations that libstdc++ has from version 13.
template <typename T> class [[nodiscard]] Result : public std::expected<T, Error> {
public:
  using std::expected<T, Error>::expected;

  /// `next(value)`, itself a Result, where there is a value; else the error.
  template <typename Next> auto and_then(Next &&next) && -> decltype(detail::invokeOn<T>(next, std::move(*this))) {
    if (!this->has_value())
      return std::unexpected(std::move(this->error()));
    return detail::invokeOn<T>(next, std::move(*this));
  }
  template <typename Next> auto and_then(Next &&next) const & {
    return Result(*this).and_then(std::forward<Next>(next));
  }

  /// `change(value)` as a Result where there is a value; else the error.
  template <typename Change>
  auto transform(Change &&change) && -> Result<decltype(detail::invokeOn<T>(change, std::move(*this)))> {
    if (!this->has_value())
      return std::unexpected(std::move(this->error()));
    if constexpr (std::is_void_v<decltype(detail::invokeOn<T>(change, std::move(*this)))>) {
      detail::invokeOn<T>(change, std::move(*this));
      return {};
    } else {
      return detail::invokeOn<T>(change, std::move(*this));
    }
  }
  template <typename Change> auto transform(Change &&change) const & {
    return Result(*this).transform(std::forward<Change>(change));
  }
};

/// Success, or why not.
using Status = Result<void>;

/// Shorthand for returning a failure from a function whose result is a `Result`.
inline std::unexpected<Error> failure(StatusCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

} // namespace weft
