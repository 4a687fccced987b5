#include "experiments/sweep/row_writer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "experiments/cli/answer.hpp"
#include "experiments/results/json_values.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::sweep {

namespace {

constexpr std::size_t kFlushBytes = 1 << 20;
constexpr std::size_t kKeptTexts = 1 << 16;
constexpr double kWholeNumbers = 9e15;  // doubles represent every whole number up to here

// Writes the shortest text that reads back as the same number.
void append_number(std::string& text, double value) {
  char digits[32];
  char* end = nullptr;
  if (std::abs(value) < kWholeNumbers && value == std::trunc(value)) {
    end = std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value)).ptr;
  } else {
    end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  }
  text.append(digits, end);
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* limited_by(const Chunk& chunk, std::size_t index) {
  return chunk.results[kComputeColumn][index] >= chunk.results[kExposedColumn][index] ? "compute"
                                                                                      : "communication";
}

/// Whether the state of a row fits into the memory of its GPUs; empty if the memory is not given.
std::optional<bool> fits(const Chunk& chunk, std::size_t index) {
  const double memory = chunk.results[kMemoryColumn][index];
  if (std::isnan(memory)) return std::nullopt;
  return chunk.results[kNeededColumn][index] <= memory;
}

std::string memory_problem(const Chunk& chunk, std::size_t index) {
  return fmt::format("needs {} of memory in a GPU that has {}",
                     commands::human_bytes(chunk.results[kNeededColumn][index]),
                     commands::human_bytes(chunk.results[kMemoryColumn][index]));
}

/// Whether the closed form represents a row that it computed; empty for a row of another engine.
std::optional<bool> closed_form_exact(const Chunk& chunk, std::size_t index, const std::string& executor) {
  if (executor != "closed-form") return std::nullopt;
  return chunk.exact[index] != 0;
}

const char* boolean(const std::optional<bool>& value, const char* unknown) {
  return !value ? unknown : *value ? "true" : "false";
}

}  // namespace

RowWriter::RowWriter(const std::string& path, const Grid& grid, const std::string& executor,
                     const std::string& currency)
    : grid_(grid), executor_(executor), currency_(currency), csv_(path.ends_with(".csv")) {
  if (path != "-") file_ = std::make_unique<AtomicFile>(path);
  const std::vector<Axis>& axes = grid.axes();
  axis_texts_.resize(axes.size());
  axis_columns_.resize(axes.size());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].numeric() && axes[a].size() > kKeptTexts) continue;
    for (std::size_t i = 0; i < axes[a].size(); ++i) {
      std::string& text = axis_texts_[a].emplace_back();
      if (axes[a].numeric()) {
        append_number(text, axes[a].numbers[i]);
      } else {
        text = csv_ ? commands::csv_cell(axes[a].words[i]) : json_text(axes[a].words[i]);
      }
    }
  }
  if (csv_) {
    put("executor");
    for (const Axis& axis : axes) put(',' + commands::csv_cell(axis.column));
    for (const std::string_view name : kResults) put(fmt::format(",{}", name));
    put(",currency,limited_by,closed_form_exact,fits,problem\n");
    return;
  }
  put(fmt::format("{{\"schema\": \"fomoe.sweep/1\", \"executor\": {}, \"axes\": [", json_text(executor_)));
  for (const Axis& axis : axes) put((&axis == &axes.front() ? "" : ", ") + json_text(axis.column));
  put("], \"rows\": [");
}

void RowWriter::put_number(Column& column, double value) {
  if (std::isnan(value)) {
    put(csv_ ? "" : "null");
    return;
  }
  if (column.text.empty() || value != column.last) {
    column.last = value;
    column.text.clear();
    append_number(column.text, value);
  }
  put(column.text);
}

void RowWriter::put_axis(std::size_t axis, std::uint64_t row) {
  const std::size_t digit = grid_.digit(row, axis);
  if (axis_texts_[axis].empty()) {
    put_number(axis_columns_[axis], grid_.axes()[axis].numbers[digit]);
  } else {
    put(axis_texts_[axis][digit]);
  }
}

void RowWriter::write_csv_row(const Chunk& chunk, std::size_t index) {
  put(executor_);
  for (std::size_t a = 0; a < grid_.axes().size(); ++a) {
    buffer_ += ',';
    put_axis(a, chunk.first_row + index);
  }
  const bool possible = chunk.problems[index].empty();
  for (std::size_t c = 0; c < kResultCount; ++c) {
    buffer_ += ',';
    if (possible) put_number(columns_[c], chunk.results[c][index]);
  }
  put("," + currency_ + ",");
  if (possible) put(limited_by(chunk, index));
  buffer_ += ',';
  if (possible) put(boolean(closed_form_exact(chunk, index, executor_), ""));
  buffer_ += ',';
  const std::optional<bool> fit = possible ? fits(chunk, index) : std::nullopt;
  put(boolean(fit, ""));
  buffer_ += ',';
  if (!possible) put(commands::csv_cell(chunk.problems[index]));
  if (!fit.value_or(true)) put(commands::csv_cell(memory_problem(chunk, index)));
  buffer_ += '\n';
}

void RowWriter::write_json_row(const Chunk& chunk, std::size_t index) {
  put(first_ ? "\n{" : ",\n{");
  for (std::size_t a = 0; a < grid_.axes().size(); ++a) {
    put(json_text(grid_.axes()[a].column));
    put(": ");
    put_axis(a, chunk.first_row + index);
    put(", ");
  }
  if (!chunk.problems[index].empty()) {
    put("\"problem\": " + json_text(chunk.problems[index]) + '}');
    return;
  }
  for (std::size_t c = 0; c < kResultCount; ++c) {
    buffer_ += '"';
    put(kResults[c]);
    put("\": ");
    put_number(columns_[c], chunk.results[c][index]);
    put(", ");
  }
  put(currency_.empty() ? "\"currency\": null, " : fmt::format("\"currency\": \"{}\", ", currency_));
  put("\"limited_by\": \"");
  put(limited_by(chunk, index));
  const std::optional<bool> fit = fits(chunk, index);
  put(fmt::format("\", \"closed_form_exact\": {}, \"fits\": {}",
                  boolean(closed_form_exact(chunk, index, executor_), "null"), boolean(fit, "null")));
  if (!fit.value_or(true)) put(", \"problem\": " + json_text(memory_problem(chunk, index)));
  put("}");
}

void RowWriter::write(const Chunk& chunk) {
  for (std::size_t i = 0; i < chunk.rows; ++i) {
    if (csv_) {
      write_csv_row(chunk, i);
    } else {
      write_json_row(chunk, i);
    }
    first_ = false;
    if (buffer_.size() >= kFlushBytes) flush();
  }
}

void RowWriter::flush() {
  if (file_) {
    file_->write(buffer_);
  } else {
    scenario::write_answer(buffer_);
  }
  buffer_.clear();
}

void RowWriter::finish(const std::optional<costmodel::Scenario>& first_possible) {
  if (!csv_) {
    put("\n]");
    if (first_possible) {
      scenario::Json inputs;
      scenario::add_inputs(inputs, *first_possible);
      for (const auto& item : inputs.items())
        put(fmt::format(",\n{}: {}", json_text(item.key()),
                        item.value().dump(-1, ' ', false, scenario::Json::error_handler_t::replace)));
    }
    put("}\n");
  }
  flush();
  if (file_) file_->commit();
}

}  // namespace fomoe::sweep
