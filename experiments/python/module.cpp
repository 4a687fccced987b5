// The functions of the Python module: one takes a command line and returns the answer, the others print
// numbers as the program does. The package fomoe wraps them. The module uses Python's limited API alone, so
// that one compiled module serves every version from Python 3.9 on; nanobind offers this only from
// Python 3.12 on, and Debian 12 has 3.11.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <exception>
#include <string>
#include <vector>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "experiments/text/human.hpp"
#include "platforms/support/input_error.hpp"

namespace {

PyObject* wrong_input = nullptr;  // the exception fomoe.InputError

PyObject* refuse(const std::exception& error) {
  PyErr_SetString(wrong_input, error.what());
  return nullptr;
}

PyObject* text_of(const std::string& text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// Returns false, with a Python exception, unless `list` is a list of strings.
bool read_arguments(PyObject* list, fomoe::commands::Arguments& arguments) {
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "answer() takes a list of strings");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    // The limited API has no direct access to the text before Python 3.10.
    PyObject* bytes = PyUnicode_AsUTF8String(PyList_GetItem(list, i));
    if (bytes == nullptr) return false;
    char* text = nullptr;
    Py_ssize_t size = 0;
    const bool read = PyBytes_AsStringAndSize(bytes, &text, &size) == 0;
    if (read) arguments.emplace_back(text, static_cast<std::size_t>(size));
    Py_DECREF(bytes);
    if (!read) return false;
  }
  return true;
}

// The function does not release the GIL, because a process can have only one SimGrid engine and one captured
// answer at a time.
PyObject* answer(PyObject*, PyObject* list) {
  try {
    fomoe::commands::Arguments arguments;
    if (!read_arguments(list, arguments)) return nullptr;
    const fomoe::scenario::CapturedOutput kept;
    try {
      fomoe::commands::run(arguments);
    } catch (const fomoe::LimitsNotMet&) {
      // The answer, which is complete, says this too.
    }
    return text_of(kept.text());
  } catch (const fomoe::FileError& error) {
    return refuse(error);
  } catch (const fomoe::InputError& error) {
    return refuse(error);
  } catch (const fomoe::UsageError& error) {
    return refuse(error);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

/// `value` as a text by `format`; null, with a Python exception, if it is no number.
PyObject* formatted(PyObject* value, std::string (*format)(double)) {
  const double number = PyFloat_AsDouble(value);
  return PyErr_Occurred() != nullptr ? nullptr : text_of(format(number));
}
PyObject* human_time(PyObject*, PyObject* value) { return formatted(value, fomoe::commands::human_time); }
PyObject* human_bytes(PyObject*, PyObject* value) { return formatted(value, fomoe::commands::human_bytes); }
PyObject* human_count(PyObject*, PyObject* value) { return formatted(value, fomoe::commands::human_count); }
PyObject* human_percent(PyObject*, PyObject* value) {
  return formatted(value, fomoe::commands::human_percent);
}
PyObject* human_money(PyObject*, PyObject* arguments) {
  double amount = 0;
  const char* currency = nullptr;
  if (PyArg_ParseTuple(arguments, "ds", &amount, &currency) == 0) return nullptr;
  return text_of(fomoe::commands::human_money(amount, currency));
}

PyMethodDef functions[] = {
    {"answer", answer, METH_O, "Runs `fomoe` with these arguments and returns its answer."},
    {"human_time", human_time, METH_O, "Seconds for people: '5 h 12 min'."},
    {"human_bytes", human_bytes, METH_O, "Bytes for people: '1.23 MB'."},
    {"human_count", human_count, METH_O, "A count for people: '124.6 M'."},
    {"human_percent", human_percent, METH_O, "A share for people: '12.3 %'."},
    {"human_money", human_money, METH_VARARGS, "An amount and its currency for people: '12.34 USD'."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_fomoe", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__fomoe() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  wrong_input = PyErr_NewExceptionWithDoc("fomoe.InputError",
                                          "Wrong input: the place, the wrong value and the expected value.",
                                          PyExc_ValueError, nullptr);
  if (wrong_input == nullptr || PyModule_AddObject(module, "InputError", wrong_input) != 0) {
    Py_XDECREF(wrong_input);
    Py_DECREF(module);
    return nullptr;
  }
  Py_INCREF(wrong_input);  // the module took the first reference
  return module;
}
