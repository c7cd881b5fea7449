// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft._native._compiler: building and checking modules of tile IR, a thin layer over weft-compiler.h.

#include "python/bindings/Compiler.h"

#include <pybind11/stl.h>
#include <vector>

namespace py = pybind11;
using namespace weft::python;

py::str weft::python::take(char *text) {
  std::unique_ptr<char, decltype(&weftc_string_free)> owner(text, &weftc_string_free);
  return py::str(text ? text : "");
}

py::list weft::python::takeDiagnostics(Context &context) {
  static const char *const severities[] = {"error", "warning", "remark", "note"};
  py::list list;
  for (size_t i = 0, n = weftc_context_diagnostic_count(context.pointer.get()); i < n; ++i) {
    weftc_diagnostic diagnostic = weftc_context_diagnostic(context.pointer.get(), i);
    list.append(py::make_tuple(severities[diagnostic.severity], diagnostic.message, diagnostic.file, diagnostic.line,
                               diagnostic.column));
  }
  weftc_context_clear_diagnostics(context.pointer.get());
  return list;
}

/// The first diagnostic's text, for the errors that only a defect of the front end causes.
static std::string firstMessage(Context &context) {
  py::list diagnostics = takeDiagnostics(context);
  return diagnostics.empty() ? "no reason given" : diagnostics[0].cast<py::tuple>()[1].cast<std::string>();
}

template <typename Pointer> static std::vector<Pointer> pointers(const py::sequence &handles) {
  std::vector<Pointer> list;
  list.reserve(handles.size());
  for (py::handle handle : handles)
    list.push_back(handle.cast<Handle<Pointer> &>().pointer);
  return list;
}

template <typename Pointer> static void bindHandle(py::module_ &m, const char *name) {
  py::class_<Handle<Pointer>>(m, name)
      .def("__eq__", [](const Handle<Pointer> &a, const Handle<Pointer> &b) { return a.pointer == b.pointer; })
      .def("__hash__", [](const Handle<Pointer> &a) { return std::hash<const void *>()(a.pointer); });
}

static Attribute checked(weftc_attribute attribute, const char *expected) {
  if (!attribute)
    throw py::value_error(std::string("expected ") + expected);
  return {attribute};
}

static void bindContext(py::module_ &m) {
  py::class_<Context>(m, "Context")
      .def(py::init<>())
      .def("take_diagnostics", &takeDiagnostics)
      .def("type",
           [](Context &c, const char *text) {
             if (weftc_type type = weftc_type_parse(c.pointer.get(), text))
               return Type{type};
             throw py::value_error(firstMessage(c));
           })
      .def("attribute",
           [](Context &c, const char *text) {
             if (weftc_attribute attribute = weftc_attribute_parse(c.pointer.get(), text))
               return Attribute{attribute};
             throw py::value_error(firstMessage(c));
           })
      .def("string",
           [](Context &c, const char *text) { return Attribute{weftc_attribute_string(c.pointer.get(), text)}; })
      .def("unit", [](Context &c) { return Attribute{weftc_attribute_unit(c.pointer.get())}; })
      .def("i32_array",
           [](Context &c, const py::sequence &values) {
             std::vector<int32_t> list;
             for (py::handle value : values)
               list.push_back(value.cast<int32_t>());
             return Attribute{weftc_attribute_i32_array(c.pointer.get(), list.data(), list.size())};
           })
      .def("location",
           [](Context &c, const char *file, unsigned line, unsigned column) {
             return Location{weftc_location_file(c.pointer.get(), file, line, column)};
           })
      .def(
          "module",
          [](Context &c, Location location) {
            return Module{&c, {weftc_module_create(c.pointer.get(), location.pointer), &weftc_module_destroy}};
          },
          py::keep_alive<0, 1>())
      .def(
          "parse",
          [](Context &c, const char *text, const char *name) {
            if (weftc_module *module = weftc_module_parse(c.pointer.get(), text, name))
              return Module{&c, {module, &weftc_module_destroy}};
            throw py::value_error(firstMessage(c));
          },
          py::arg("text"), py::arg("name") = "<text>", py::keep_alive<0, 1>());
  m.def("integer", [](Type type, int64_t value) {
    return checked(weftc_attribute_integer(type.pointer, value), "an integer type");
  });
  m.def("float_",
        [](Type type, double value) { return checked(weftc_attribute_float(type.pointer, value), "a float type"); });
  m.def("inlined", [](Location callee, Location caller) {
    return Location{weftc_location_inlined(callee.pointer, caller.pointer)};
  });
}

/// What belongs to the library as a whole.
static void bindLibrary(py::module_ &m) {
  m.def("version", &weftc_version);
  m.def("targets", [] { return take(weftc_targets()); });
  m.def("tool_main", [](const std::string &name, std::vector<std::string> arguments) {
    std::vector<char *> texts;
    for (std::string &each : arguments)
      texts.push_back(each.data());
    texts.push_back(nullptr);
    py::gil_scoped_release released;
    return weftc_tool_main(name.c_str(), static_cast<int>(arguments.size()), texts.data());
  });
}

/// Creates an operation; gives None, its one result, or a tuple of its results.
static py::object create(Module &module, const char *name, Location location, const py::sequence &operands,
                         const py::sequence &results, const py::dict &attributes, const py::sequence &regions) {
  auto operandList = pointers<weftc_value>(operands);
  auto resultList = pointers<weftc_type>(results);
  auto regionList = pointers<weftc_region *>(regions);
  std::vector<weftc_named_attribute> attributeList;
  for (auto [key, value] : attributes)
    attributeList.push_back({PyUnicode_AsUTF8(key.ptr()), value.cast<Attribute &>().pointer});
  weftc_operation_spec spec = {name,
                               location.pointer,
                               operandList.data(),
                               operandList.size(),
                               resultList.data(),
                               resultList.size(),
                               attributeList.data(),
                               attributeList.size(),
                               regionList.data(),
                               regionList.size()};
  weftc_operation operation = weftc_operation_create(module.pointer.get(), &spec);
  if (!operation)
    throw py::value_error(firstMessage(*module.context));
  if (resultList.empty())
    return py::none();
  if (resultList.size() == 1)
    return py::cast(Value{weftc_operation_result(operation, 0)});
  py::tuple values(resultList.size());
  for (size_t i = 0; i < resultList.size(); ++i)
    values[i] = Value{weftc_operation_result(operation, i)};
  return values;
}

static void bindModule(py::module_ &m) {
  py::class_<Module> module(m, "Module");
  module
      .def("create", &create, py::arg("name"), py::arg("location"), py::arg("operands") = py::tuple(),
           py::arg("results") = py::tuple(), py::arg("attributes") = py::dict(), py::arg("regions") = py::tuple())
      .def("region",
           [](Module &m, const py::sequence &arguments, Location location) {
             auto types = pointers<weftc_type>(arguments);
             return Region{weftc_region_create(m.pointer.get(), types.data(), types.size(), location.pointer)};
           })
      .def_property(
          "insertion", [](Module &m) { return Block{weftc_module_insertion_block(m.pointer.get())}; },
          [](Module &m, Block block) { weftc_module_set_insertion_block(m.pointer.get(), block.pointer); })
      .def("set_attribute", [](Module &m, const char *name,
                               Attribute value) { weftc_module_set_attribute(m.pointer.get(), name, value.pointer); })
      .def("verify", [](Module &m) { return weftc_module_verify(m.pointer.get()); })
      .def(
          "text", [](Module &m, bool locations) { return take(weftc_module_print(m.pointer.get(), locations)); },
          py::arg("locations") = false);
  bindCompile(module);
}

PYBIND11_MODULE(_compiler, m) {
  m.doc() = "The compiler's C interface: contexts, modules of tile IR, compilation to PTX.";
  bindHandle<weftc_type>(m, "Type");
  bindHandle<weftc_attribute>(m, "Attribute");
  bindHandle<weftc_location>(m, "Location");
  bindHandle<weftc_block>(m, "Block");
  py::class_<Value>(m, "Value")
      .def("__eq__", [](const Value &a, const Value &b) { return a.pointer == b.pointer; })
      .def("__hash__", [](const Value &a) { return std::hash<const void *>()(a.pointer); })
      .def("set_attribute", [](Value v, const char *name, Attribute attribute) {
        return weftc_value_set_attribute(v.pointer, name, attribute.pointer);
      });
  py::class_<Region>(m, "Region")
      .def_property_readonly("block", [](Region r) { return Block{weftc_region_block(r.pointer)}; })
      .def("argument", [](Region r, size_t index) { return Value{weftc_region_argument(r.pointer, index)}; })
      .def("add_argument", [](Region r, Type type, Location location) {
        return Value{weftc_region_add_argument(r.pointer, type.pointer, location.pointer)};
      });
  bindLibrary(m);
  bindContext(m);
  bindModule(m);
  bindPatterns(m);
}
