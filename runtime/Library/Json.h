// Part of Weft. SPDX-License-Identifier: Apache-2.0
// JSON as the library format uses it: strict parsing, and a cursor that checks as it reads and remembers the first
// thing that was wrong, with its path.
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace weft::library {

/// Parses JSON. Corrupt on text that is cut short or no JSON, on a key that stands twice in one object, on more than 32
/// levels of nesting.
Result<nlohmann::json> parseJson(std::string_view text);

/// The text that digests are taken over: keys sorted, no white space, UTF-8 not escaped.
std::string canonicalJson(const nlohmann::json &value);

/// A place in a JSON document. Reading something that is not as expected records an error in the shared sink and gives
/// a harmless default, so that readers are straight lines; only the first error is kept.
class Cursor {
public:
  Cursor(const nlohmann::json &node, std::optional<Error> &sink) : node(&node), sink(&sink) {}

  /// The member `key`, which must exist.
  Cursor at(const char *key) const;
  /// Whether an object has the member.
  bool has(const char *key) const;
  /// Calls `visit` for each element of an array of at most `limit`, until an error.
  void each(size_t limit, const std::function<void(const Cursor &)> &visit) const;
  /// Calls `visit` for each member of an object of at most `limit`, until an error.
  void eachMember(size_t limit, const std::function<void(const std::string &, const Cursor &)> &visit) const;
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) const;
  /// A number, or one of "inf", "-inf" and "nan", which JSON has no numbers for.
  double real() const;
  /// A string of at most `limit` bytes.
  std::string string(size_t limit = 4096) const;
  /// A non-empty string of letters, digits and any of `extra`, not starting with a digit or '.', of at most 255 bytes.
  std::string name(std::string_view extra = "_$") const;
  /// The JSON value itself.
  const nlohmann::json &value() const { return *node; }
  /// Records an error at this place: "kernels[0].name: MESSAGE".
  void wrong(const std::string &message) const;
  /// Whether anything went wrong so far anywhere in the document.
  bool failed() const { return sink->has_value(); }

private:
  Cursor child(const nlohmann::json &node, std::string path) const;

  const nlohmann::json *node;
  std::optional<Error> *sink;
  std::string path;
};

} // namespace weft::library
