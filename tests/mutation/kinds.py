"""Mutants of a source file: one small change each, of the kinds that tests were seen to miss.

A comparison moved by one or turned round, an operand of `and` or `or` dropped, a condition taken as given, an element
of a list dropped, a number, a flag, `min` or `any` changed, a statement dropped. Annotations, messages, logging and
assertions are left alone.
"""

import ast
import hashlib
from collections.abc import Callable
from functools import cache

from msgspec import Struct

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LOGS = frozenset({"log", "logger", "_log"})
_QUIET_KEYWORDS = frozenset({"strict"})
"""Keywords that check the programmer and change no result."""


class Mutant(Struct, frozen=True):
    """One change: the bytes from `start` to `end` of the file become `after`. Lines count from 1.

    `first` and `last` are the lines whose running can show it. `hot`: it lies inside a function, so that a loaded
    module can be given the changed code; otherwise the module has to be loaded anew.
    """

    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    first: int
    last: int
    hot: bool
    name: str = ""
    tests: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key that tells it from every other mutant of the same file as it is."""
        said = f"{self.file}:{self.start}:{self.end}:{self.kind}:{self.after}"
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def changed(source: bytes, mutant: Mutant) -> bytes:
    """The file with the mutant in it; every line after it keeps its number."""
    lost = source[mutant.start : mutant.end].count(b"\n") - mutant.after.count("\n")
    return source[: mutant.start] + mutant.after.encode() + b"\n" * max(0, lost) + source[mutant.end :]


def mutants(file: str, source: bytes) -> list[Mutant]:
    """Every mutant of the file, in the order of the text."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda m: (m.start, m.end, m.kind, m.after))


def planted(file: str, source: bytes, before: str, after: str) -> Mutant:
    """A mutant that somebody wrote down. Raises ValueError where its text does not occur once, or makes no program."""
    times = source.count(before.encode())
    if times != 1:
        raise ValueError(f"its text occurs {times} times in {file}: renew it")
    start = source.index(before.encode())
    end = start + len(before.encode())
    line = source.count(b"\n", 0, start) + 1
    first, last, hot = _place(_outline(source), line, line + before.count("\n"))
    hot = hot and after.count("\n") <= before.count("\n")
    mutant = Mutant(file, line, "planted", before, after, start, end, first, last, hot)
    try:
        compile(changed(source, mutant), file, "exec")
    except SyntaxError as error:
        raise ValueError(f"with it {file} is no program, which any test would notice: {error}") from error
    return mutant


class _Outline(Struct, frozen=True):
    """The lines of a file's statements, and those of its functions' bodies: first and last, from 1."""

    statements: tuple[tuple[int, int], ...]
    bodies: tuple[tuple[int, int], ...]


@cache
def _outline(source: bytes) -> _Outline:
    """The outline of a file; many planted bugs share one, and a file is walked once for all of them."""
    nodes = list(ast.walk(ast.parse(source)))
    return _Outline(
        tuple(_span(node) for node in nodes if isinstance(node, ast.stmt)),
        tuple(
            (node.body[0].lineno, node.body[-1].end_lineno or 0)
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
    )


def _place(outline: _Outline, first: int, last: int) -> tuple[int, int, bool]:
    """The lines of the statements that these lines belong to, and whether one function's body holds them."""
    touched = [(a, b) for a, b in outline.statements if a <= last and b >= first]
    hot = any(a <= first and last <= b for a, b in outline.bodies)
    return min((a for a, _ in touched), default=first), max((b for _, b in touched), default=last), hot


def _span(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement itself: of one that has a body, those of its head."""
    body = getattr(statement, "body", None)
    end = statement.end_lineno or statement.lineno
    if isinstance(body, list) and body and not isinstance(statement, ast.Match):
        end = max(statement.lineno, body[0].lineno - 1)
    return statement.lineno, end


class _Finder(ast.NodeVisitor):
    """Walks a file and notes the mutants of each node."""

    def __init__(self, file: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._source = source
        self._begins = [0]
        for line in source.splitlines(keepends=True):
            self._begins.append(self._begins[-1] + len(line))
        self._hot = False
        self._lines = (1, 1)

    # --- where we are

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before, self._lines = self._lines, _span(node)
        super().visit(node)
        self._lines = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(outside)
        before, self._hot = self._hot, True
        for statement in node.body:
            self.visit(statement)
        self._hot = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._hot = self._hot, False
        for statement in node.body:
            self.visit(statement)
        self._hot = before

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # --- left alone

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion is for a bug of ours."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Mutates the raised value; whether it is raised, its condition's mutants say."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text for people."""

    def visit_Slice(self, node: ast.Slice) -> None:
        """How much of a text is kept."""

    def visit_Import(self, node: ast.Import) -> None:
        """Names."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Names."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _QUIET_KEYWORDS:
            self.visit(node.value)

    # --- the kinds

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                operators = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._put(node, "comparison", ast.Compare(node.left, operators, node.comparators))
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            self._elements(node.comparators[0])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            self._put(node, "operand", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._put(node, "not", node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _ARITHMETIC.get(type(node.op))
        if other is not None and not (_is_text(node.left) or _is_text(node.right)):
            self._put(node, "arithmetic", ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._given(node.test, (False, True))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._given(node.test, (False, True))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._given(condition, (True,))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(value):
                self._put(node, "flag", ast.Constant(not value))
            case int(number):
                self._put(node, "number", ast.Constant(number + 1))
            case float(number):
                self._put(node, "number", ast.Constant(number * 2 or 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            self._put(node.func, "call", ast.Name(_CALLS[node.func.id]))
        if isinstance(node.func, ast.Name) and node.func.id in ("frozenset", "set") and node.args:
            self._elements(node.args[0])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _is_log(node.value):
            return
        self._put(node, "statement", ast.Pass())
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._put(node, "statement", ast.Pass())
        self.visit(node.value)

    def _given(self, condition: ast.expr, values: tuple[bool, ...]) -> None:
        """The condition taken as given; one that binds a name still binds it."""
        binds = any(isinstance(part, ast.NamedExpr) for part in ast.walk(condition))
        for value in values:
            given: ast.expr = ast.Constant(value)
            if binds:
                pair = ast.Tuple([condition, given], ast.Load())
                given = ast.Subscript(pair, ast.Constant(1), ast.Load())
            self._put(condition, "condition", given)

    def _elements(self, listed: ast.expr) -> None:
        if not isinstance(listed, ast.Tuple | ast.Set | ast.List) or len(listed.elts) < 2:
            return
        for place in range(len(listed.elts)):
            rest = [*listed.elts[:place], *listed.elts[place + 1 :]]
            fewer: Callable[[list[ast.expr]], ast.expr] = ast.Set if isinstance(listed, ast.Set) else _tuple
            self._put(listed, "element", fewer(rest))

    def _put(self, old: ast.expr | ast.stmt, kind: str, new: ast.AST) -> None:
        start, end = self._offset(old.lineno, old.col_offset), self._offset(old.end_lineno, old.end_col_offset)
        text = ast.unparse(ast.fix_missing_locations(new))
        after = text if isinstance(new, ast.Pass | ast.Constant | ast.Name | ast.Tuple | ast.Set) else f"({text})"
        first, last = self._lines
        before = self._source[start:end].decode()
        self.found.append(Mutant(self._file, old.lineno, kind, before, after, start, end, first, last, self._hot))

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None, "a parsed node has its place"
        assert column is not None, "a parsed node has its place"
        return self._begins[line - 1] + column


def _tuple(elements: list[ast.expr]) -> ast.expr:
    return ast.Tuple(elements, ast.Load())


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_log(node: ast.expr) -> bool:
    called: ast.expr = node.func if isinstance(node, ast.Call) else node
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in _LOGS
