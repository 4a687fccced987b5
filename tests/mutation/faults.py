"""The faults that mutate.py puts into C++ sources: every place of a file at which one small change gives another program."""
import dataclasses
import re

# Spaces around an operator tell it from a template bracket, a pointer or a sign; clang-format guarantees them.
OPERATORS = {
    "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["+"], "+=": ["-=", "="], "-=": ["+=", "="], "*=": ["/=", "="],
    "/=": ["*=", "="], "&&": ["||"], "||": ["&&"],
}
WORDS = {"std::max": "std::min", "std::min": "std::max", "std::ceil": "std::floor", "std::floor": "std::ceil", "true": "false",
         "false": "true", "std::max_element": "std::min_element", "std::min_element": "std::max_element",
         ".front()": ".back()", ".back()": ".front()", "++": "--", "--": "++"}
# Lines without behaviour, or whose text only a reader sees.
SKIPPED = re.compile(r"^\s*(#|//|\*|using |namespace|template|static_assert|extern|class |struct |enum |friend )")
DECLARED = re.compile(r"^\s*(const |constexpr |auto |std::|double |int |bool |return|throw|break|continue|static |case |default|public|\}"
                      r"|[\w:<>]+ [\w]+( =|;|\{|\())")


@dataclasses.dataclass(frozen=True)
class Fault:
    line: int  # from 1
    begin: int  # columns of the text that is replaced, from 0
    end: int
    old: str
    new: str

    def apply(self, text):
        lines = text.split("\n")
        line = lines[self.line - 1]
        assert line[self.begin:self.end] == self.old, (self, line)
        lines[self.line - 1] = line[:self.begin] + self.new + line[self.end:]
        return "\n".join(lines)

    @property
    def change(self):
        return f"{self.old.strip()} → {self.new.strip() or 'nothing'}"


def blanked(line):
    """The line with strings and comments replaced by spaces, so that columns stay."""
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', lambda found: " " * len(found[0]), line)
    return re.sub(r"//.*", lambda found: " " * len(found[0]), line)


def closing(code, at):
    """The place of the parenthesis that closes the one at `at`; None if it is on another line."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return None


def other_numbers(word):
    if re.fullmatch(r"\d+", word):
        value = int(word)
        return [str(value + 1)] + ([str(value - 1)] if value > 0 else [])
    return ["(2 * " + word + ")"]


def of_line(number, line, before):
    """`before` is the end of the code before this line, which tells a statement from the rest of one."""
    code = blanked(line)
    if not code.strip() or SKIPPED.match(code):
        return
    def fault(begin, end, new):
        return Fault(number, begin, end, line[begin:end], new)
    for found in re.finditer(r"(?<= )(<=|>=|==|!=|\+=|-=|\*=|/=|&&|\|\||[<>+\-*/%])(?= )", code):
        for new in OPERATORS[found[0]]:
            yield fault(found.start(), found.end(), new)
    for old, new in WORDS.items():
        edge = r"\b" if old[-1].isalpha() else ""
        for found in re.finditer((r"\b" if old[0].isalpha() else "") + re.escape(old) + edge, code):
            yield fault(found.start(), found.end(), new)
    for found in re.finditer(r"(?<![\w.'])(\d+\.\d+(e[+-]?\d+)?|\d+e[+-]?\d+|\d+)(?![\w.'])", code):
        for new in other_numbers(found[0]):
            yield fault(found.start(), found.end(), new)
    # A condition, negated.
    for found in re.finditer(r"\b(if|while) \(", code):
        end = closing(code, found.end() - 1)
        if end and ";" not in code[found.end():end] and " = " not in code[found.end():end]:
            yield fault(found.end(), end, "!(" + line[found.end():end] + ")")
    # A term or a factor, dropped.
    for found in re.finditer(r" [+\-*/] [\w:.\->\[\]]+(?=[;,)]| [+\-])", code):
        yield fault(found.start(), found.end(), "")
    # A statement, removed.
    if code.rstrip().endswith(";") and not DECLARED.match(code) and code.count("(") == code.count(")") and before in ";{}:":
        inner = re.match(r"\s*(if \(|for \(|while \(|else )", code)
        start = len(code) - len(code.lstrip())
        if inner is None:
            yield fault(start, len(code.rstrip()), ";")


def of_text(text):
    faults, before = [], ";"
    for number, line in enumerate(text.split("\n"), 1):
        faults += [fault for fault in of_line(number, line, before) if fault.old != fault.new]
        before = blanked(line).rstrip()[-1:] or before
    return faults
