// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Running a pure function of one lane's values on 32 lanes: loops that vectorise, whatever lanes are active.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft::simulator::machine {

/// A predicate as a lane function's result or argument.
struct Bool {
  bool value;
};

/// What a register slot of a type holds per lane: 32 bits, or 64.
template <typename T> using SlotOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T> [[gnu::always_inline]] inline T fromSlot(SlotOf<T> slot) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return std::bit_cast<T>(slot);
  else
    return T(slot);
}

/// 8- and 16-bit results are kept zero-extended.
template <typename T> [[gnu::always_inline]] inline SlotOf<T> toSlot(T value) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return std::bit_cast<SlotOf<T>>(value);
  else
    return SlotOf<T>(std::make_unsigned_t<T>(value));
}

/// Writes the lanes of `mask`.
template <typename S> [[gnu::always_inline]] inline void commit(S *to, const S *values, uint32_t mask) {
  if (mask == ~0u) {
    std::memcpy(to, values, sizeof(S) * laneCount);
    return;
  }
  for (unsigned i = 0; i < laneCount; ++i)
    to[i] = (mask >> i & 1) ? values[i] : to[i];
}

/// One bit per lane from 0 or 1 per lane.
[[gnu::always_inline]] inline uint32_t packBits(const uint32_t *flags) {
  uint32_t bits = 0;
  for (unsigned i = 0; i < laneCount; ++i)
    bits |= (flags[i] & 1) << i;
  return bits;
}

/// Writes the bits of `mask`.
inline void commitPredicate(uint32_t &to, uint32_t bits, uint32_t mask) { to = (to & ~mask) | (bits & mask); }

namespace detail {

template <typename A> struct Source {
  const SlotOf<A> *values;
  Source(const Warp &warp, Ref ref) : values(warp.reg<const SlotOf<A>>(ref)) {}
  [[gnu::always_inline]] A operator[](unsigned lane) const { return fromSlot<A>(values[lane]); }
};
template <> struct Source<Bool> {
  uint32_t bits;
  Source(const Warp &warp, Ref ref) : bits(warp.predicate(ref)) {}
  [[gnu::always_inline]] bool operator[](unsigned lane) const { return bits >> lane & 1; }
};

} // namespace detail

/// Compiled once for any x86-64 and once for AVX2; the decoder takes the one that the machine has.
#if defined(__x86_64__)
#define WEFT_WIDE_LANES [[gnu::target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")]]
/// For what is called more often than any one executor: a third time, for AVX-512.
#define WEFT_WIDEST_LANES [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,bmi,bmi2,lzcnt,popcnt")]]
inline bool hostIsWide() {
  static const bool wide =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return wide;
}
inline bool hostIsWidest() {
  static const bool widest = hostIsWide() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return widest;
}
/// Of functions NAMEWidest, NAMEWide and NAMENarrow the one for the host.
#define WEFT_BEST_LANES(name) (hostIsWidest() ? name##Widest : hostIsWide() ? name##Wide : name##Narrow)
#else
#define WEFT_WIDE_LANES
#define WEFT_WIDEST_LANES
#define WEFT_BEST_LANES(name) (name##Narrow)
inline bool hostIsWide() { return false; }
#endif

/// Two compilations of one executor.
struct LaneExecutor {
  Executor wide, narrow;
  operator Executor() const { return hostIsWide() ? wide : narrow; }
  void operator()(Warp &warp, const Record &record, uint32_t mask) const {
    (hostIsWide() ? wide : narrow)(warp, record, mask);
  }
};

namespace detail {

/// F applied to lane `lane` of the sources, after Record::imm where `WithOptions`.
template <auto F, bool WithOptions, typename R, typename... A>
[[gnu::always_inline]] inline void runLanes(Warp &warp, const Record &record, uint32_t mask) {
  [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    std::tuple<Source<A>...> sources{Source<A>(warp, record.op[1 + I])...};
    const auto options = uint32_t(record.imm);
    auto at = [&](unsigned lane) __attribute__((always_inline)) {
      if constexpr (WithOptions)
        return F(options, std::get<I>(sources)[lane]...);
      else
        return F(std::get<I>(sources)[lane]...);
    };
    if constexpr (std::is_same_v<R, Bool>) {
      uint32_t flags[laneCount];
      for (unsigned lane = 0; lane < laneCount; ++lane)
        flags[lane] = at(lane) ? 1 : 0;
      commitPredicate(warp.predicate(record.op[0]), packBits(flags), mask);
    } else {
      SlotOf<R> results[laneCount];
      for (unsigned lane = 0; lane < laneCount; ++lane)
        results[lane] = toSlot<R>(R(at(lane)));
      commit(warp.reg<SlotOf<R>>(record.op[0]), results, mask);
    }
  }(std::index_sequence_for<A...>{});
}

template <auto F, bool WithOptions, typename R, typename... A>
WEFT_WIDE_LANES void runWideLanes(Warp &warp, const Record &record, uint32_t mask) {
  runLanes<F, WithOptions, R, A...>(warp, record, mask);
}
template <auto F, bool WithOptions, typename R, typename... A>
void runNarrowLanes(Warp &warp, const Record &record, uint32_t mask) {
  runLanes<F, WithOptions, R, A...>(warp, record, mask);
}

} // namespace detail

/// op[0] = F(op[1], op[2], ...) with results of type R and arguments of types A. R or an A may be Bool.
template <auto F, typename R, typename... A>
constexpr LaneExecutor lanes{detail::runWideLanes<F, false, R, A...>, detail::runNarrowLanes<F, false, R, A...>};

/// `lanes` with a first argument that is the same for all lanes: F(record.imm, op[1], op[2], ...). Modifiers such as
/// .ftz travel there, so that they cost no instance of their own.
template <auto F, typename R, typename... A>
constexpr LaneExecutor lanesWith{detail::runWideLanes<F, true, R, A...>, detail::runNarrowLanes<F, true, R, A...>};

} // namespace weft::simulator::machine
