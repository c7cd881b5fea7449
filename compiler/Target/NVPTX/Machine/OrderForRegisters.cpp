// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See OrderForRegisters.h. The emitter writes a tile op for all of a thread's elements before the next op, so that
// products are all there before the first is added up:
//
//   mma %d0, ..; mma %d1, ..; fma %a0, %d0; fma %a1, %d1    -->    mma %d0, ..; fma %a0, %d0; mma %d1, ..; fma %a1, %d1
//
// ptxas orders instructions too, from the order in which they come, and where some order fits in a thread's registers
// it mostly finds one and hides more latency. So only blocks are touched that fit in none of the orders tried here;
// what those save need not be spilt.

#include "compiler/Target/NVPTX/Machine/OrderForRegisters.h"
#include "compiler/Target/NVPTX/Machine/BlockGraph.h"
#include "compiler/Target/NVPTX/Machine/InlineAssembly.h"
#include "compiler/Target/NVPTX/Machine/Rematerialise.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include <optional>
#include <set>

using namespace llvm;

namespace weft {
namespace {

/// A block is ordered anew where that saves this part of a thread's registers: less is lost in what ptxas does.
constexpr int worthwhile = 8;

/// An order of a block's instructions, from its first to its last, and the most registers that live in it.
struct Order {
  SmallVector<unsigned, 0> places;
  int most = 0;
};

class OrderForRegisters : public MachineFunctionPass {
public:
  static char ID;
  OrderForRegisters(RegisterLimits limits, RegisterReports reports)
      : MachineFunctionPass(ID), limits(limits), reports(std::move(reports)) {}
  StringRef getPassName() const override { return "Weft: order for registers"; }
  bool runOnMachineFunction(MachineFunction &function) override;
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

private:
  RegisterLimits limits;
  RegisterReports reports;
};

char OrderForRegisters::ID = 0;

} // namespace

namespace {
/// Registers that live as instructions are taken one by one: from a block's end to its start, or the other way.
class Taking {
public:
  Taking(const BlockGraph &graph, bool upwards);

  bool isDone() const { return ready.empty(); }
  /// The instruction that stands next as they stood.
  unsigned next() const { return placeOf(*ready.begin()); }
  /// The one that leaves the fewest registers live, the next one of several.
  unsigned fewest() const { return placeOf(byChange.begin()->second); }
  /// The difference that taking an instruction makes. Of one that is ready it changes with the values that others take.
  int changeBy(unsigned place) const { return changes[place]; }
  void take(unsigned place);
  int live() const { return count; }
  int most() const { return order.most; }
  Order finish() &&;

private:
  /// What sorts instructions as they are come to.
  unsigned rankOf(unsigned place) const { return upwards ? graph.nodes.size() - 1 - place : place; }
  unsigned placeOf(unsigned rank) const { return rankOf(rank); }
  int changeOf(const Node &node) const;
  void makeReady(unsigned place);
  void use(unsigned value);

  const BlockGraph &graph;
  bool upwards;
  SmallVector<SmallVector<unsigned, 4>, 0> after;     // downwards: who waits for whom
  SmallVector<SmallVector<unsigned, 4>, 0> readersOf; // of each value
  SmallVector<unsigned, 0> waiting;
  std::set<unsigned> ready;                    // ranks of those that wait for none
  std::set<std::pair<int, unsigned>> byChange; // the same, by what they change
  SmallVector<int, 0> changes;                 // of those
  SmallVector<unsigned, 0> readersLeft;        // downwards: of each value; upwards: 1 where it lives
  int count;
  Order order;
};
} // namespace

Taking::Taking(const BlockGraph &graph, bool upwards)
    : graph(graph), upwards(upwards), readersOf(graph.values.size()), waiting(graph.nodes.size(), 0),
      changes(graph.nodes.size(), 0), count(upwards ? graph.atEnd : graph.atStart) {
  if (!upwards)
    after.resize(graph.nodes.size());
  for (auto [place, node] : llvm::enumerate(graph.nodes)) {
    for (unsigned before : node.before)
      if (upwards) {
        ++waiting[before];
      } else {
        ++waiting[place];
        after[before].push_back(place);
      }
    for (unsigned value : node.uses)
      readersOf[value].push_back(place);
  }
  for (const BlockValue &value : graph.values)
    readersLeft.push_back(upwards ? value.liveOut : value.readers + value.liveOut);
  for (unsigned place = 0; place < waiting.size(); ++place)
    if (!waiting[place])
      makeReady(place);
  order.most = count;
}

int Taking::changeOf(const Node &node) const {
  int change = 0;
  for (unsigned value : node.defines)
    if (readersLeft[value])
      change += upwards ? -graph.values[value].width : graph.values[value].width;
  for (unsigned value : node.uses)
    if (upwards ? !readersLeft[value] : readersLeft[value] == 1)
      change += upwards ? graph.values[value].width : -graph.values[value].width;
  return change;
}

void Taking::makeReady(unsigned place) {
  changes[place] = changeOf(graph.nodes[place]);
  ready.insert(rankOf(place));
  byChange.insert({changes[place], rankOf(place)});
}

/// A value is used by what is taken: upwards it lives from here on, downwards until its last reader. Once for each value
/// that changes what its other readers, or its last one, make.
void Taking::use(unsigned value) {
  bool matters = upwards ? !readersLeft[value] : readersLeft[value] == 2;
  upwards ? readersLeft[value] = 1 : --readersLeft[value];
  if (!matters)
    return;
  for (unsigned reader : readersOf[value]) {
    if (!ready.count(rankOf(reader)))
      continue;
    byChange.erase({changes[reader], rankOf(reader)});
    changes[reader] = changeOf(graph.nodes[reader]);
    byChange.insert({changes[reader], rankOf(reader)});
  }
}

void Taking::take(unsigned place) {
  const Node &node = graph.nodes[place];
  count += changes[place];
  ready.erase(rankOf(place));
  byChange.erase({changes[place], rankOf(place)});
  for (unsigned value : node.uses)
    use(value);
  if (upwards)
    for (unsigned value : node.defines)
      readersLeft[value] = 0;
  order.most = std::max(order.most, count);
  order.places.push_back(place);
  for (unsigned freed : upwards ? node.before : after[place])
    if (--waiting[freed] == 0)
      makeReady(freed);
}

Order Taking::finish() && {
  if (upwards)
    std::reverse(order.places.begin(), order.places.end());
  return std::move(order);
}

/// Takes instructions as they stood, while no more than `limit` registers live; otherwise the one that leaves the
/// fewest live. None where that holds `tooMany` or more.
static std::optional<Order> orderWithin(const BlockGraph &graph, bool upwards, int limit, int tooMany) {
  Taking taking(graph, upwards);
  while (!taking.isDone() && taking.most() < tooMany) {
    unsigned next = taking.next();
    int change = taking.changeBy(next);
    taking.take(change > 0 && taking.live() + change > limit ? taking.fewest() : next);
  }
  if (taking.most() >= tooMany)
    return std::nullopt;
  return std::move(taking).finish();
}

static void apply(const Order &order, ArrayRef<Node> nodes, MachineBasicBlock &block) {
  MachineBasicBlock::iterator end = block.getFirstTerminator();
  for (unsigned place : order.places)
    block.splice(end, &block, nodes[place].instruction->getIterator());
}

/// The order that holds the fewest registers, of those found from either end with the limit reached early or late.
static Order fewest(const BlockGraph &graph, int limit) {
  Order best;
  best.most = std::numeric_limits<int>::max();
  for (int within : {limit, limit * 3 / 4, limit / 2, 0})
    for (bool upwards : {true, false}) {
      std::optional<Order> order = orderWithin(graph, upwards, within, /*tooMany=*/best.most);
      if (order)
        best = std::move(*order);
      if (best.most <= limit)
        return best;
    }
  return best;
}

void forgetLastReads(MachineFunction &function) {
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      for (MachineOperand &operand : instruction.operands())
        if (operand.isReg() && operand.isUse())
          operand.setIsKill(false);
}

/// Whether a block takes more registers than `most` in the best order found.
static bool isAbove(MachineFunction &function, int most, const MCInstPrinter &mnemonics) {
  LiveOut liveOut(function);
  return llvm::any_of(function, [&](MachineBasicBlock &block) {
    return mostLive(block, liveOut.of(block)) > most &&
           fewest(graphOf(block, liveOut.of(block), mnemonics), most).most > most;
  });
}

/// Computes again where they are used what registers lack for. Up to a sixth too many, ptxas mostly finds what fits
/// by itself; a third too many, it spills whatever is done here, and what is computed again only adds to that.
static int rematerialiseWhereItPays(MachineFunction &function, int limit, const MCInstPrinter &mnemonics) {
  if (!isAbove(function, limit + limit / 6, mnemonics))
    return 0;
  return rematerialise(function, limit, mnemonics, [&] { return !isAbove(function, limit + limit / 3, mnemonics); });
}

/// Registers of a thread, of which a kernel of many threads has fewer: a multiprocessor holds a block at the least.
static int registersOf(const Function &kernel, RegisterLimits limits) {
  constexpr int granule = 8;
  int threads = 1;
  for (StringRef size : llvm::split(kernel.getFnAttribute("nvvm.reqntid").getValueAsString(), ','))
    if (int number = 0; to_integer(size, number) && number > 0)
      threads *= number;
  return std::min(limits.perThread, limits.perProcessor / threads / granule * granule);
}

/// ptxas gives a kernel that it cannot keep from spilling the registers of some thirty-two, and many times the spills,
/// unless it is told that one block on a multiprocessor is enough. It then takes a few more of any kernel, too.
static void takeAllRegisters(Function &kernel) {
  if (!kernel.hasFnAttribute("nvvm.minctasm"))
    kernel.addFnAttr("nvvm.minctasm", "1");
}

bool OrderForRegisters::runOnMachineFunction(MachineFunction &function) {
  std::unique_ptr<MCInstPrinter> mnemonics = mnemonicsFor(function.getTarget());
  const int registersPerThread = registersOf(function.getFunction(), limits);
  int recomputed = rematerialiseWhereItPays(function, registersPerThread, *mnemonics);
  if (recomputed)
    reports.recomputed(function.getName(), recomputed);
  bool changed = recomputed > 0, lacks = false;
  LiveOut liveOut(function);
  for (MachineBasicBlock &block : function) {
    int before = mostLive(block, liveOut.of(block));
    if (before <= registersPerThread)
      continue;
    BlockGraph graph = graphOf(block, liveOut.of(block), *mnemonics);
    Order order = fewest(graph, registersPerThread);
    if (order.most <= registersPerThread)
      continue;
    lacks = true;
    // Products of warpgroups may be under way: until they are waited for, their registers are theirs.
    if (hasAssembly(block, "wgmma.") || before - order.most < registersPerThread / worthwhile)
      continue;
    apply(order, graph.nodes, block);
    reports.reordered(function.getName(), {before, order.most});
    changed = true;
  }
  if (changed)
    forgetLastReads(function);
  if (lacks)
    takeAllRegisters(function.getFunction());
  return changed;
}

MachineFunctionPass *createOrderForRegisters(RegisterLimits limits, RegisterReports reports) {
  return new OrderForRegisters(limits, std::move(reports));
}

} // namespace weft
