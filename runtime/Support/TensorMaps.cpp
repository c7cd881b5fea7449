// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/TensorMaps.h"

#include "runtime/Support/Format.h"
#include "runtime/Support/Numbers.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace weft {
namespace {

constexpr std::string_view mark = "// weft.tensor_map ";
constexpr size_t mostKept = 32;

/// The text up to `end`, which goes with it.
std::string_view take(std::string_view &text, char end) {
  size_t length = text.find(end);
  std::string_view word = text.substr(0, length);
  text.remove_prefix(std::min(text.size(), length == std::string_view::npos ? text.size() : length + 1));
  return word;
}

/// "i8@56"
std::optional<ParameterSum::Factor> factorOf(std::string_view text) {
  if (!text.starts_with('i'))
    return std::nullopt;
  text.remove_prefix(1);
  std::optional<uint32_t> bytes = numberOf<uint32_t>(take(text, '@')), offset = numberOf<uint32_t>(text);
  bool known = bytes && offset && (*bytes == 1 || *bytes == 2 || *bytes == 4 || *bytes == 8) && *offset < 1 << 16;
  return known ? std::optional<ParameterSum::Factor>({*bytes, *offset}) : std::nullopt;
}

std::optional<ParameterSum> sumOf(std::string_view text) {
  ParameterSum sum;
  while (!text.empty()) {
    std::string_view term = take(text, '+');
    std::optional<int64_t> coefficient = numberOf<int64_t>(take(term, '*'));
    if (!coefficient)
      return std::nullopt;
    sum.terms.push_back({*coefficient, {}});
    while (!term.empty()) {
      std::optional<ParameterSum::Factor> factor = factorOf(take(term, '*'));
      if (!factor)
        return std::nullopt;
      sum.terms.back().factors.push_back(*factor);
    }
  }
  return sum.terms.empty() ? std::nullopt : std::optional(sum);
}

/// A list with commas between; "-" is an empty one.
template <typename T, typename Read> bool readList(std::string_view text, std::vector<T> &list, Read read) {
  if (text == "-")
    return true;
  while (!text.empty()) {
    std::optional<T> each = read(take(text, ','));
    if (!each)
      return false;
    list.push_back(std::move(*each));
  }
  return true;
}

/// One field of a line, "at=128".
bool readField(std::string_view field, TensorMapRecipe &recipe) {
  std::string_view key = take(field, '=');
  auto number = [&](uint32_t &to) {
    std::optional<uint32_t> value = numberOf<uint32_t>(field);
    to = value.value_or(0);
    return value.has_value();
  };
  if (key == "at")
    return number(recipe.at);
  if (key == "swizzle")
    return number(recipe.swizzle);
  if (key == "type")
    return recipe.type = field, std::ranges::find(tensorMapTypes, field, &TensorMapType::name) != tensorMapTypes.end();
  if (key == "box")
    return readList(field, recipe.box, numberOf<uint32_t>);
  if (key == "sizes")
    return readList(field, recipe.sizes, sumOf);
  if (key == "strides")
    return readList(field, recipe.strides, sumOf);
  std::optional<ParameterSum> base = key == "base" ? sumOf(field) : std::nullopt;
  if (base)
    recipe.base = *base;
  return base.has_value();
}

std::optional<TensorMapRecipe> recipeOf(std::string_view fields) {
  TensorMapRecipe recipe;
  while (!fields.empty())
    if (!readField(take(fields, ' '), recipe))
      return std::nullopt;
  size_t rank = recipe.box.size();
  bool whole = rank >= 1 && rank <= 5 && recipe.sizes.size() == rank && recipe.strides.size() + 1 == rank &&
               !recipe.base.terms.empty() && !recipe.type.empty() && recipe.at != 0 && recipe.at < 1 << 16;
  return whole ? std::optional(recipe) : std::nullopt;
}

/// A signed integer among the parameters; none where they end before.
std::optional<int64_t> valueOf(const ParameterSum::Factor &factor, std::span<const std::byte> parameters) {
  if (factor.offset + size_t(factor.bytes) > parameters.size())
    return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, parameters.data() + factor.offset, factor.bytes);
  unsigned unused = 64 - 8 * factor.bytes;
  return int64_t(value << unused) >> unused;
}

std::optional<int64_t> evaluateSum(const ParameterSum &sum, std::span<const std::byte> parameters) {
  int64_t total = 0;
  for (const ParameterSum::Term &term : sum.terms) {
    int64_t product = term.coefficient;
    for (const ParameterSum::Factor &factor : term.factors) {
      std::optional<int64_t> value = valueOf(factor, parameters);
      if (!value || __builtin_mul_overflow(product, *value, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(total, product, &total))
      return std::nullopt;
  }
  return total;
}

} // namespace

Result<TensorMapValues> TensorMapRecipe::evaluate(std::span<const std::byte> parameters) const {
  TensorMapValues values{type, swizzle, 0, box, {}, {}};
  auto refuse = [](std::string_view what) {
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected arguments that are of a tensor, but got {}", what));
  };
  std::optional<int64_t> address = evaluateSum(base, parameters);
  if (!address)
    return refuse("too few or too large ones for the kernel's tensor maps");
  values.address = uint64_t(*address);
  for (const ParameterSum &sum : sizes) {
    std::optional<int64_t> size = evaluateSum(sum, parameters);
    if (!size)
      return refuse("a size that is no number of 64 bits");
    // An axis without elements has no map, nor has a kernel anything to copy of it.
    values.sizes.push_back(uint64_t(std::max<int64_t>(*size, 1)));
  }
  for (const ParameterSum &sum : strides) {
    std::optional<int64_t> stride = evaluateSum(sum, parameters);
    if (!stride || *stride < 0)
      return refuse("a stride that is negative, or no number of 64 bits; copy the tensor first");
    values.strides.push_back(uint64_t(*stride));
  }
  return values;
}

Result<TensorMapsOfEntries> tensorMapsOf(std::string_view ptx) {
  TensorMapsOfEntries found;
  for (size_t at = ptx.find(mark); at != std::string_view::npos; at = ptx.find(mark, at + 1)) {
    std::string_view rest = ptx.substr(at + mark.size());
    std::string_view line = take(rest, '\n');
    std::string_view fields = line, version = take(fields, ' ');
    if (version != "1")
      return failure(StatusCode::Unsupported,
                     weft::format("expected tensor maps of version 1, but got '{}': the PTX is of a later Weft", line));
    std::string entry(take(fields, ' '));
    std::optional<TensorMapRecipe> recipe = recipeOf(fields);
    if (!recipe)
      return failure(StatusCode::Corrupt, weft::format("expected the description of a tensor map, but got '{}'", line));
    TensorMapRecipes &recipes = found[entry];
    if (!recipes.empty() && recipe->at < recipes.back().at + sizeof(TensorMapBytes))
      return failure(StatusCode::Corrupt, weft::format("expected tensor maps one after another, but got '{}'", line));
    recipes.push_back(std::move(*recipe));
  }
  return found;
}

Result<TensorMapBytes> TensorMapParameters::bytesOf(const TensorMapValues &values) {
  std::scoped_lock lock(guard);
  for (const auto &[known, bytes] : kept)
    if (known == values)
      return bytes;
  Result<TensorMapBytes> bytes = encode(values);
  if (!bytes)
    return bytes;
  if (kept.size() < mostKept)
    kept.emplace_back(values, *bytes);
  else
    kept[next++ % mostKept] = {values, *bytes};
  return bytes;
}

Result<std::vector<std::byte>> TensorMapParameters::complete(std::span<const std::byte> parameters) {
  std::vector<std::byte> all(parameters.begin(), parameters.end());
  for (const TensorMapRecipe &recipe : recipes) {
    Result<TensorMapValues> values = recipe.evaluate(parameters);
    if (!values)
      return std::unexpected(values.error());
    Result<TensorMapBytes> bytes = bytesOf(*values);
    if (!bytes)
      return std::unexpected(bytes.error());
    all.resize(recipe.at + bytes->size());
    std::copy(bytes->begin(), bytes->end(), all.begin() + recipe.at);
  }
  return all;
}

} // namespace weft
