// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weftc_compile: a module of tile IR, or of attn programs, through every stage to PTX.

#include "compiler/CAPI/Batch.h"
#include "compiler/CAPI/Internal.h"
#include "compiler/CAPI/Products.h"
#include "compiler/CAPI/Programs.h"
#include "compiler/CAPI/Remarks.h"
#include "compiler/CAPI/Schedules.h"
#include "compiler/Pipelines/Checks.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Support/ProcessorTime.h"
#include "compiler/Target/NVPTX/EmitPTX.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include <variant>

using namespace mlir;
using namespace weft;

namespace {

/// Why a compilation ended, as `weftc_compile` reports it.
struct Failure {
  weftc_status status;
  std::string message;
};
template <typename T> using Outcome = std::variant<T, Failure>;

struct Options {
  std::string target{targets::all().front().name};
  llvm::StringSet<> dumps;
  bool dumpAll = false;
  bool lineInfo = true;
  bool differentiate = false;
  bool remarks = false;   // what fast paths were not taken, and why
  bool decisions = false; // what was decided instead of something else
  bool locations = false; // of every op in dumps
  bool boxes = true;      // bulk copies fill rings of shared memory, and store results
  bool roles = true;      // a warp of its own makes them where that pays
  bool widen = false;     // every float as f32: a reference for what narrower ones give
  KernelChoices schedules;
  Linearisation linearise;
  KeptPasses *kept = nullptr; // the context's

  bool wants(StringRef stage) const { return dumpAll || dumps.contains(stage); }
};

/// What a compilation gives besides PTX.
struct Record {
  llvm::json::Object timesMs, ir;
  int ptxVersion = 0;
  llvm::json::Array kernels, programs, schedules, tilings, remarks, decisions;
};

/// {"function": "f.forward", "arguments": [0, 2]}
std::optional<Linearisation> readLinearisation(const llvm::json::Object &object) {
  Linearisation made;
  for (const auto &[key, value] : object) {
    if (key == "function" && value.getAsString()) {
      made.function = value.getAsString()->str();
    } else if (key == "arguments" && value.getAsArray()) {
      for (const llvm::json::Value &number : *value.getAsArray())
        if (std::optional<uint64_t> each = number.getAsUINT64())
          made.arguments.push_back(*each);
        else
          return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return made;
}

Outcome<Options> parseOptions(StringRef text) {
  Options options;
  auto parsed = llvm::json::parse(text.trim().empty() ? "{}" : text);
  if (!parsed)
    return Failure{WEFTC_INVALID_ARGUMENT, "the options are not JSON: " + llvm::toString(parsed.takeError())};
  const llvm::json::Object *object = parsed->getAsObject();
  if (!object)
    return Failure{WEFTC_INVALID_ARGUMENT, "expected the options to be a JSON object"};
  for (const auto &[key, value] : *object) {
    if (key == "target" && value.getAsString())
      options.target = value.getAsString()->str();
    else if (key == "line_info" && value.getAsBoolean())
      options.lineInfo = *value.getAsBoolean();
    else if (key == "differentiate" && value.getAsBoolean())
      options.differentiate = *value.getAsBoolean();
    else if (key == "remarks" && value.getAsBoolean())
      options.remarks = *value.getAsBoolean();
    else if (key == "decisions" && value.getAsBoolean())
      options.decisions = *value.getAsBoolean();
    else if (key == "locations" && value.getAsBoolean())
      options.locations = *value.getAsBoolean();
    else if (key == "widen" && value.getAsBoolean())
      options.widen = *value.getAsBoolean();
    else if (key == "boxes" && value.getAsBoolean())
      options.boxes = *value.getAsBoolean();
    else if (key == "roles" && value.getAsBoolean())
      options.roles = *value.getAsBoolean();
    else if (key == "schedules" && value.getAsObject()) {
      auto choices = capi::readSchedules(*value.getAsObject());
      if (auto *refused = std::get_if<std::string>(&choices))
        return Failure{WEFTC_INVALID_ARGUMENT, *refused};
      options.schedules = std::move(std::get<KernelChoices>(choices));
    } else if (auto *linearise = value.getAsObject(); key == "linearise" && linearise) {
      auto read = readLinearisation(*linearise);
      if (!read)
        return Failure{WEFTC_INVALID_ARGUMENT, "expected 'linearise' to have a 'function' and its 'arguments'"};
      options.linearise = std::move(*read);
    } else if (key == "dump" && value.getAsArray())
      for (const llvm::json::Value &stage : *value.getAsArray()) {
        options.dumpAll |= stage.getAsString() == "all";
        options.dumps.insert(stage.getAsString().value_or(""));
      }
    else
      return Failure{WEFTC_INVALID_ARGUMENT, "unknown option '" + key.str() + "', or a value of the wrong kind"};
  }
  return options;
}

std::string printed(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, locations ? OpPrintingFlags().enableDebugInfo() : OpPrintingFlags().useLocalScope());
  return text;
}

/// The type of a kernel's argument in the library's words: "*f16", "i32".
std::string argumentType(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto pointer = dyn_cast<tile::PointerType>(type))
    stream << '*' << argumentType(pointer.getPointee());
  else
    stream << type;
  return text;
}

llvm::json::Object describeKernel(func::FuncOp kernel) {
  llvm::json::Array arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto divisibility = kernel.getArgAttrOfType<IntegerAttr>(i, tile::divisibilityAttrName);
    arguments.push_back(
        llvm::json::Object{{"type", argumentType(type)}, {"divisibility", divisibility ? divisibility.getInt() : 1}});
  }
  tile::Schedule schedule = tile::scheduleOf(kernel);
  return llvm::json::Object{{"entry", kernel.getName()},
                            {"num_warps", schedule.warps},
                            {"num_stages", schedule.stages},
                            {"arguments", std::move(arguments)}};
}

/// Fills in what is known after pipelining: stages, which may be fewer than were asked for, and the pairs of arguments that
/// must be different arrays.
void addPipelinedFacts(ModuleOp module, llvm::json::Array &kernels) {
  for (llvm::json::Value &kernel : kernels) {
    auto function = module.lookupSymbol<func::FuncOp>(*kernel.getAsObject()->getString("entry"));
    if (auto schedule = function->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName))
      (*kernel.getAsObject())["num_stages"] = schedule.getStages();
    llvm::json::Array pairs;
    if (auto relied = function->getAttrOfType<DenseI32ArrayAttr>(warp::reliedApartAttrName))
      for (int64_t i = 0; i + 1 < relied.size(); i += 2)
        pairs.push_back(llvm::json::Array{relied[i], relied[i + 1]});
    (*kernel.getAsObject())["apart"] = std::move(pairs);
  }
}

/// Fills in what is known after lowering: shared memory, warps where roles added some, and the blocks of a cluster.
void addLoweredFacts(ModuleOp module, llvm::json::Array &kernels) {
  for (llvm::json::Value &kernel : kernels) {
    llvm::json::Object &object = *kernel.getAsObject();
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(*object.getString("entry"));
    auto bytes = function ? function->getAttrOfType<IntegerAttr>(warp::sharedBytesAttrName) : IntegerAttr();
    object["shared_bytes"] = bytes ? bytes.getInt() : 0;
    if (auto threads = function ? function->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName())
                                : DenseI32ArrayAttr())
      object["num_warps"] = threads[0] / 32;
    if (auto blocks = function ? function->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getClusterDimAttrName())
                               : DenseI32ArrayAttr())
      object["cluster"] = blocks[0];
  }
}

/// What the PTX says of the parameters that its kernels have behind their own, and launches add, as comments.
std::string addedParameterNotes(ModuleOp module) {
  std::string notes;
  for (auto kernel : module.getOps<LLVM::LLVMFuncOp>()) {
    if (auto lines = kernel->getAttrOfType<ArrayAttr>(warp::tensorMapsAttrName))
      for (auto line : lines.getAsRange<StringAttr>())
        notes += ("// weft.tensor_map 1 " + line.getValue() + "\n").str();
    if (auto at = kernel->getAttrOfType<IntegerAttr>(warp::programsAttrName))
      notes += ("// weft.programs 1 " + kernel.getName() + " at=" + llvm::Twine(at.getInt()) + "\n").str();
  }
  return notes;
}

/// Runs stages on the module; false after reported diagnostics.
bool run(const std::vector<Stage> &stages, ModuleOp module, const Options &options, Record &record) {
  for (const Stage &stage : stages) {
    double start = processorMs();
    if (failed(runStage(stage, module, checksAsked(), options.kept)))
      return false;
    record.timesMs[stage.name] = processorMs() - start;
    if (options.wants(stage.name))
      record.ir[stage.name] = printed(module, options.locations);
  }
  return true;
}

/// What a plan says of a program beside its launches: "products", and its "batch" where it has one.
llvm::json::Object factsOf(func::FuncOp program) {
  llvm::json::Object facts{{"products", capi::describeProducts(program)}};
  if (StringRef batch = capi::batchOf(program); !batch.empty())
    facts["batch"] = batch;
  return facts;
}

/// Lowers the programs of a module to launches and takes them out of it, so that tile kernels remain.
std::optional<Failure> takePrograms(ModuleOp module, const Options &options, Record &record) {
  if (!capi::hasPrograms(module))
    return std::nullopt;
  Failure failed{WEFTC_UNSUPPORTED, "the program cannot be lowered to kernels"};
  llvm::StringMap<llvm::json::Object> facts; // by program, of its attn ops
  if (options.differentiate || !options.linearise.function.empty() || capi::needsLowering(module)) {
    std::vector<Stage> stages = attnToTileStages(options.differentiate, options.schedules, options.linearise);
    if (options.widen)
      capi::widenFloats(module);
    if (!run({stages.front()}, module, options, record))
      return failed;
    record.schedules = capi::describeSchedules(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(attn::programAttrName))
        facts[function.getName()] = factsOf(function);
    if (!run({stages.begin() + 1, stages.end()}, module, options, record))
      return failed;
    record.tilings = capi::describeTilings(module);
  }
  double start = processorMs();
  // Once, whatever the environment asks for: an op that its verifier does not take may still become PTX, of something
  // else.
  if (mlir::failed(verify(module)))
    return failed;
  FailureOr<llvm::json::Array> programs = capi::takePrograms(module, options.target);
  if (mlir::failed(programs))
    return failed;
  record.programs = std::move(*programs);
  for (llvm::json::Value &program : record.programs)
    for (auto &[key, value] : facts[*program.getAsObject()->getString("name")])
      (*program.getAsObject())[key] = std::move(value);
  record.timesMs["programs"] = processorMs() - start;
  return std::nullopt;
}

/// Notes in a module, as it was before, which of its kernels lack columns of tensor memory. Whether any does.
bool noteLackOfColumns(ModuleOp module, ModuleOp before) {
  bool any = false;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (Attribute lack = kernel->getAttr(warp::lacksColumnsAttrName)) {
      before.lookupSymbol<func::FuncOp>(kernel.getName())->setAttr(warp::lacksColumnsAttrName, lack);
      any = true;
    }
  return any;
}

/// From tile kernels to where their pipelines stand. How much of tensor memory a kernel needs is known last: where that is
/// too much, the stages behind the first run again for products of warps. False after reported diagnostics.
bool lowerToPipelined(ModuleOp module, const TargetInfo &target, const std::vector<Stage> &stages,
                      const Options &options, Record &record) {
  if (!run({stages.front()}, module, options, record))
    return false;
  const std::vector<Stage> rest(stages.begin() + 1, stages.end() - 1);
  OwningOpRef<ModuleOp> before = target.warpgroups.tensorColumns ? module.clone() : ModuleOp();
  if (!run(rest, module, options, record))
    return false;
  if (!before || !noteLackOfColumns(module, *before))
    return true;
  module.getBodyRegion().takeBody(before->getBodyRegion());
  return run(rest, module, options, record);
}

Outcome<EmittedPTX> compile(ModuleOp module, const Options &options, Record &record) {
  const TargetInfo *target = TargetInfo::find(options.target);
  if (!target)
    return Failure{WEFTC_INVALID_ARGUMENT, "unknown target '" + options.target + "'; known are " + targets::names()};
  if (mlir::failed(verify(module)))
    return Failure{WEFTC_UNSUPPORTED, "the module is not valid"};
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registry.insert<warp::WarpDialect, LLVM::LLVMDialect>();
  registerPTXTranslations(registry);
  context->appendDialectRegistry(registry);
  module->setAttr(targetAttrName, StringAttr::get(context, StringRef(target->name)));
  if (std::optional<Failure> failure = takePrograms(module, options, record))
    return *failure;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(tile::kernelAttrName))
      record.kernels.push_back(describeKernel(kernel));
  std::vector<Stage> stages = tileToLLVMStages(options.boxes, options.roles);
  Failure failed{WEFTC_UNSUPPORTED, "the kernel cannot be lowered to target '" + options.target + "'"};
  if (!lowerToPipelined(module, *target, stages, options, record))
    return failed;
  addPipelinedFacts(module, record.kernels);
  if (!run({stages.back()}, module, options, record))
    return failed;
  addLoweredFacts(module, record.kernels);
  auto emitted = emitPTX(module, *target,
                         {.lineInfo = options.lineInfo,
                          .keepLLVM = options.wants("llvmir"),
                          .verify = checksAsked() == Checks::Expensive});
  if (mlir::failed(emitted))
    return Failure{WEFTC_INTERNAL, "LLVM cannot compile the lowered module"};
  emitted->text += addedParameterNotes(module);
  record.ptxVersion = emitted->version;
  record.timesMs["translate"] = emitted->translateMs;
  record.timesMs["optimise"] = emitted->optimiseMs;
  record.timesMs["select"] = emitted->instructionSelectMs;
  if (!emitted->llvmIR.empty())
    record.ir["llvmir"] = emitted->llvmIR;
  return std::move(*emitted);
}

std::string infoText(const TargetInfo &target, Record record, double totalMs) {
  record.timesMs["total"] = totalMs;
  llvm::json::Object info{
      {"target", StringRef(target.name)},
      {"ptx_version", std::to_string(record.ptxVersion / 10) + "." + std::to_string(record.ptxVersion % 10)},
      {"kernels", std::move(record.kernels)},
      {"programs", std::move(record.programs)},
      {"schedules", std::move(record.schedules)},
      {"tilings", std::move(record.tilings)},
      {"remarks", std::move(record.remarks)},
      {"decisions", std::move(record.decisions)},
      {"times_ms", std::move(record.timesMs)},
      {"ir", std::move(record.ir)}};
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::json::Value(std::move(info));
  return text;
}

} // namespace

weftc_status weftc_compile(weftc_module *module, const char *options_json, char **ptx, char **info_json, char **error) {
  *ptx = *info_json = *error = nullptr;
  auto fail = [&](const Failure &failure) {
    *error = capi::copyText(failure.message);
    return failure.status;
  };
  double start = processorMs();
  auto options = parseOptions(options_json ? options_json : "");
  if (auto *failure = std::get_if<Failure>(&options))
    return fail(*failure);
  Record record;
  std::optional<capi::RemarkCollector> remarks;
  std::get<Options>(options).kept = &module->context->passes;
  if (const Options &asked = std::get<Options>(options); asked.remarks || asked.decisions)
    remarks.emplace(module->context->context, asked.remarks, asked.decisions);
  auto emitted = compile(*module->module, std::get<Options>(options), record);
  if (remarks) {
    record.remarks = remarks->takeMissed();
    record.decisions = remarks->takeDecisions();
  }
  if (auto *failure = std::get_if<Failure>(&emitted))
    return fail(*failure);
  *ptx = capi::copyText(std::get<EmittedPTX>(emitted).text);
  *info_json = capi::copyText(
      infoText(*TargetInfo::find(std::get<Options>(options).target), std::move(record), processorMs() - start));
  return WEFTC_OK;
}
