// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/EntryParameters.h"

#include "runtime/Support/Numbers.h"

#include <algorithm>
#include <optional>

namespace weft {
namespace {

constexpr std::string_view spaces = " \t\r\n";

/// A copy of PTX text without its comments.
std::string withoutComments(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    size_t line = text.find("//"), block = text.find("/*"), first = std::min(line, block);
    plain += text.substr(0, first);
    if (first == std::string_view::npos)
      break;
    size_t end = line < block ? text.find('\n', first) : text.find("*/", first + 2);
    text.remove_prefix(
        std::min(text.size(), end == std::string_view::npos ? text.size() : end + (line < block ? 0 : 2)));
    plain += ' ';
  }
  return plain;
}

std::string_view takeWord(std::string_view &text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(spaces)));
  std::string_view word = text.substr(0, text.find_first_of(spaces));
  text.remove_prefix(word.size());
  return word;
}

/// The bytes of ".u64" or ".b8"; those of a texture's, sampler's or surface's reference are a handle's.
std::optional<uint32_t> bytesOfType(std::string_view type) {
  if (type == ".texref" || type == ".samplerref" || type == ".surfref")
    return 8;
  bool known = type.size() > 2 && type[0] == '.' && std::string_view("busf").contains(type[1]);
  std::optional<uint32_t> bits = known ? numberOf<uint32_t>(type.substr(2)) : std::nullopt;
  return bits && (*bits == 8 || *bits == 16 || *bits == 32 || *bits == 64 || *bits == 128) ? std::optional(*bits / 8)
                                                                                           : std::nullopt;
}

/// How many elements a name has: "m[128]".
std::optional<uint32_t> countOf(std::string_view name) {
  size_t open = name.find('[');
  if (open == std::string_view::npos)
    return 1;
  size_t close = name.find(']', open);
  return close == std::string_view::npos ? std::nullopt : numberOf<uint32_t>(name.substr(open + 1, close - open - 1));
}

/// One declaration: ".param .align 64 .b8 m[128]", ".param .u64 .ptr .global .align 16 x", behind what ends at `end`.
std::optional<EntryParameter> parameterOf(std::string_view declaration, uint32_t end) {
  std::optional<uint32_t> element, align;
  bool pointer = false; // what follows is said of what it points to
  while (true) {
    std::string_view word = takeWord(declaration);
    if (word == ".param" || word == ".global" || word == ".const" || word == ".shared" || word == ".local")
      continue;
    if (word == ".ptr") {
      pointer = true;
    } else if (word == ".align") {
      std::optional<uint32_t> bytes = numberOf<uint32_t>(takeWord(declaration));
      if (!bytes || *bytes == 0 || (*bytes & (*bytes - 1)))
        return std::nullopt;
      if (!pointer)
        align = bytes;
    } else if (word.starts_with('.')) {
      element = bytesOfType(word);
      if (!element)
        return std::nullopt;
    } else {
      std::string name(word);
      name += declaration; // "m [128]" has a space
      std::optional<uint32_t> count = countOf(name);
      if (!element || word.empty() || !count)
        return std::nullopt;
      uint32_t at = align.value_or(*element);
      return EntryParameter{(end + at - 1) / at * at, *element * *count};
    }
  }
}

std::optional<EntryParameters> parametersOf(std::string_view list) {
  EntryParameters found;
  uint32_t end = 0;
  while (list.find_first_not_of(spaces) != std::string_view::npos) {
    size_t comma = list.find(',');
    std::optional<EntryParameter> parameter = parameterOf(list.substr(0, comma), end);
    if (!parameter)
      return std::nullopt;
    end = parameter->offset + parameter->bytes;
    found.push_back(*parameter);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return found;
}

/// Whether a place of a text is behind "//" in its line.
bool isInLineComment(std::string_view text, size_t at) {
  size_t line = text.rfind('\n', at);
  return text.substr(line == std::string_view::npos ? 0 : line, at - (line == std::string_view::npos ? 0 : line))
      .contains("//");
}

} // namespace

std::map<std::string, EntryParameters, std::less<>> entryParametersOf(std::string_view ptx) {
  constexpr std::string_view mark = ".entry";
  std::map<std::string, EntryParameters, std::less<>> found;
  for (size_t at = ptx.find(mark); at != std::string_view::npos; at = ptx.find(mark, at + 1)) {
    if (isInLineComment(ptx, at))
      continue;
    std::string_view rest = ptx.substr(at + mark.size());
    std::string head = withoutComments(rest.substr(0, rest.find_first_of("{;")));
    size_t open = head.find('('), close = head.find(')', open == std::string::npos ? 0 : open);
    std::string_view before = std::string_view(head).substr(0, open);
    std::string name(takeWord(before));
    bool hasList = open != std::string::npos && close != std::string::npos;
    std::string_view list = hasList ? std::string_view(head).substr(open + 1, close - open - 1) : std::string_view();
    if (std::optional<EntryParameters> parameters = parametersOf(list); parameters && !name.empty())
      found[name] = std::move(*parameters);
  }
  return found;
}

} // namespace weft
