// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Json.h"

#include "runtime/Support/Format.h"
#include <cmath>
#include <set>

namespace weft::library {
namespace {

using nlohmann::json;

constexpr int deepestNesting = 32;
const json none;

/// Thrown out of the parser's callback, caught in parseJson.
struct Refused {
  std::string why;
};

/// Why the parser refused, without the library's own numbering.
std::string parserWords(const std::string &what) {
  size_t colon = what.find("] ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

std::string typeName(const json &value) {
  return value.is_number_float() ? "a fraction" : std::string(value.type_name());
}

} // namespace

/// What the parser would pass over: it skips a byte order mark, and ends where a null character is.
static Status checkPlain(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    return failure(StatusCode::Corrupt, "no JSON: it begins with a byte order mark");
  size_t at = text.find('\0');
  return at == text.npos ? Status()
                         : failure(StatusCode::Corrupt, weft::format("no JSON: byte {} is a null character", at));
}

Result<json> parseJson(std::string_view text) {
  if (Status status = checkPlain(text); !status)
    return std::unexpected(status.error());
  std::vector<std::set<std::string>> keys;
  auto check = [&](int depth, json::parse_event_t event, json &parsed) {
    if (depth > deepestNesting)
      throw Refused{weft::format("nested deeper than {} levels", deepestNesting)};
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Refused{weft::format("the key '{}' stands twice in one object", parsed.get<std::string>())};
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const Refused &refused) {
    return failure(StatusCode::Corrupt, refused.why);
  } catch (const json::parse_error &error) {
    bool ends = error.byte >= text.size() && !std::string_view(error.what()).contains("; expected end of input");
    return failure(StatusCode::Corrupt,
                   ends ? "cut short: the JSON text ends too early" : "no JSON: " + parserWords(error.what()));
  } catch (const json::exception &error) {
    return failure(StatusCode::Corrupt, "no JSON: " + parserWords(error.what()));
  }
}

std::string canonicalJson(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

Cursor Cursor::child(const json &value, std::string where) const {
  Cursor result(value, *sink);
  result.path = std::move(where);
  return result;
}

Cursor Cursor::at(const char *key) const {
  std::string where = path.empty() ? key : path + "." + key;
  if (!has(key)) {
    if (!node->is_object())
      wrong(weft::format("expected an object, but got {}", typeName(*node)));
    child(none, where).wrong("is missing");
    return child(none, where);
  }
  return child(*node->find(key), where);
}

bool Cursor::has(const char *key) const { return node->is_object() && node->contains(key); }

void Cursor::each(size_t limit, const std::function<void(const Cursor &)> &visit) const {
  if (!node->is_array())
    return wrong(weft::format("expected an array, but got {}", typeName(*node)));
  if (node->size() > limit)
    return wrong(weft::format("expected at most {} elements, but got {}", limit, node->size()));
  for (size_t i = 0; i < node->size() && !failed(); ++i)
    visit(child((*node)[i], weft::format("{}[{}]", path, i)));
}

void Cursor::eachMember(size_t limit, const std::function<void(const std::string &, const Cursor &)> &visit) const {
  if (!node->is_object())
    return wrong(weft::format("expected an object, but got {}", typeName(*node)));
  if (node->size() > limit)
    return wrong(weft::format("expected at most {} members, but got {}", limit, node->size()));
  for (auto member = node->begin(); member != node->end() && !failed(); ++member)
    visit(member.key(), child(member.value(), path + "." + member.key()));
}

int64_t Cursor::integer(int64_t low, int64_t high) const {
  bool fits = node->is_number_integer() && !(node->is_number_unsigned() && node->get<uint64_t>() > INT64_MAX);
  int64_t value = fits ? node->get<int64_t>() : 0;
  if (fits && low <= value && value <= high)
    return value;
  wrong(weft::format("expected an integer from {} to {}, but got {}", low, high,
                     node->is_number() ? canonicalJson(*node) : typeName(*node)));
  return low;
}

double Cursor::real() const {
  if (node->is_number())
    return node->get<double>();
  if (*node == "inf" || *node == "-inf")
    return *node == "inf" ? HUGE_VAL : -HUGE_VAL;
  if (*node != "nan")
    wrong(weft::format("expected a number, \"inf\", \"-inf\" or \"nan\", but got {}", canonicalJson(*node)));
  return NAN;
}

std::string Cursor::string(size_t limit) const {
  if (!node->is_string()) {
    wrong(weft::format("expected a string, but got {}", typeName(*node)));
    return {};
  }
  const std::string &text = node->get_ref<const std::string &>();
  if (text.size() <= limit)
    return text;
  wrong(weft::format("expected at most {} bytes, but got {}", limit, text.size()));
  return {};
}

std::string Cursor::name(std::string_view extra) const {
  std::string text = string(255);
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  auto allowed = [&](char c) {
    return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || extra.contains(c);
  };
  if (failed() || (!text.empty() && !digit(text[0]) && text[0] != '.' && std::ranges::all_of(text, allowed)))
    return text;
  wrong(weft::format("expected a name of letters, digits and any of '{}', but got '{}'", extra, text));
  return {};
}

void Cursor::wrong(const std::string &message) const {
  if (!failed())
    *sink = Error{StatusCode::Corrupt, path.empty() ? message : weft::format("{}: {}", path, message)};
}

} // namespace weft::library
