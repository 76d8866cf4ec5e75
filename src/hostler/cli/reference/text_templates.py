"""Reads the texts that code makes from its syntax: every call of a constructor, with its text as a template.

In a template {name} stands for a value, [text] for text that is there or not, (one | other) for either.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from hostler.cli.reference.syntax import syntax, uncollected

DEEPEST = 6
"""Calls and assignments that are followed into each other."""
MOST_WAYS = 8
"""Texts of a table that are listed one by one; of a longer one its name is shown."""
_ITSELF = frozenset({"id", "name", "value", "text", "self", "cell", "fleet"})
_TEXT_OF = frozenset(
    {"replace", "strip", "rstrip", "lower", "format", "removeprefix", "partition", "rpartition", "decode"}
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class CallSite(Struct, frozen=True):
    """A call of a constructor: its module (below `hostler`), the function around it, the templates of its arguments.

    Each argument has one template for every way in which its text may come about; none where it is not given.
    """

    module: str
    function: str
    arguments: tuple[tuple[str, ...], ...]


class Sources:
    """Parsed modules by name ("core.policy.guards")."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        with uncollected():
            self.trees = {name: syntax(text) for name, text in texts.items()}
            self._known = {name: _definitions(tree) for name, tree in self.trees.items()}
            self._calls: dict[str, list[tuple[str, Function, ast.Call]]] = {}
            for name, tree in self.trees.items():
                for function, call in _calls(tree):
                    self._calls.setdefault(_called(call.func), []).append((name, function, call))

    def calls(self, constructor: str, arguments: Sequence[tuple[int, str]]) -> Iterator[CallSite]:
        """Every call of this name, in the modules' order; `arguments`: position and keyword of each text wanted."""
        for module, function, call in self._calls.get(constructor, ()):
            last = max(position for position, _ in arguments)
            given = (_argument(call, position, keyword, last) for position, keyword in arguments)
            reader = _Reader(self, module, function, call.lineno)
            texts = tuple(reader.ways(one) if one is not None else () for one in given)
            yield CallSite(module, function.name, texts)

    def definition(self, module: str, name: str) -> tuple[str, ast.AST] | None:
        """The module that defines a name which `module` uses, and what stands there; None where it is not ours."""
        found = self._known.get(module, {}).get(name)
        if not isinstance(found, ast.ImportFrom):
            return None if found is None else (module, found)
        origin = (found.module or "").removeprefix("hostler.")
        real = next((one.name for one in found.names if (one.asname or one.name) == name), name)
        return self.definition(origin, real) if origin in self.trees and origin != module else None


class _Reader:
    """Reads expressions of one function."""

    def __init__(self, sources: Sources, module: str, function: Function, line: int, depth: int = 0) -> None:
        self._sources, self._module, self._function = sources, module, function
        self._line, self._depth = line, depth

    def ways(self, node: ast.expr) -> tuple[str, ...]:
        """The templates of an expression, one for each way in which its text may come about."""
        match node:
            case ast.IfExp():
                found = [*self.ways(node.body), *self.ways(node.orelse)]
            case ast.Name() if self._depth < DEEPEST and (given := self._assigned(node.id)):
                found = [way for value in given for way in self._deeper().ways(value)]
            case ast.Subscript(value=ast.Name() | ast.IfExp() | ast.JoinedStr() as value, slice=ast.Slice()):
                found = list(self.ways(value))
            case _:
                found = [self.read(node)]
        return tuple(dict.fromkeys(" ".join(one.split()) for one in found))

    def read(self, node: ast.expr) -> str:  # noqa: PLR0911, C901 - one flat table of cases
        """The template of an expression."""
        match node:
            case ast.Constant(value=value):
                return str(value)
            case ast.JoinedStr():
                return "".join(self.read(part) for part in node.values)
            case ast.FormattedValue() | ast.NamedExpr():
                return self.read(node.value)
            case ast.IfExp():
                return _either([self.read(node.body), self.read(node.orelse)])
            case ast.BinOp(op=ast.Add()) if _is_text(node):
                return self.read(node.left) + self.read(node.right)
            case ast.BoolOp(op=ast.Or()):
                return _either([self.read(value) for value in node.values])
            case ast.Subscript(value=ast.Name(id=name)) if texts := self._table(name):
                return _either(texts)
            case ast.Subscript():
                return self.read(node.value)
            case ast.Name():
                return self._name(node)
            case ast.Call():
                return self._call(node)
            case _:
                return _placeholder(node)

    def _deeper(self, module: str = "", function: Function | None = None) -> "_Reader":
        line = self._line if function is None else function.end_lineno or function.lineno
        return _Reader(self._sources, module or self._module, function or self._function, line, self._depth + 1)

    def _assigned(self, name: str) -> list[ast.expr]:
        """Values that a name may hold here: the last assignment before, with those of the branches beside it."""
        before = [(node, value) for node, target, value in _assignments(self._function) if target == name]
        earlier = [(node, value) for node, value in before if node.lineno < self._line] or before
        if not earlier:
            return []
        last = earlier[-1][0]
        if isinstance(last, ast.AugAssign):
            return [_joined([value for _, value in earlier])]
        beside = next((b for b in _branches(self._function) if _within(last, b) and not _holds(b, self._line)), last)
        found = [value for node, value in earlier if _within(node, beside)]
        skipped = isinstance(beside, ast.If) and not beside.orelse
        first = next((value for node, value in reversed(earlier) if node.lineno < beside.lineno), None)
        return [first, *found] if skipped and first is not None and first not in found else found

    def _name(self, node: ast.Name) -> str:
        if self._depth >= DEEPEST:
            return _placeholder(node)
        if given := [value for value in self._assigned(node.id) if _is_text(value)]:
            return _either([self._deeper().read(value) for value in given])
        match self._sources.definition(self._module, node.id):
            case (_, ast.Assign(value=ast.Constant(value=value))) if not self._assigned(node.id):
                return str(value)
        return _placeholder(node)

    def _table(self, name: str) -> list[str]:
        """The texts of a table at the top of a module, few enough to be read; [] where it holds anything else."""
        match self._sources.definition(self._module, name):
            case (_, ast.Assign(value=ast.Dict(values=values))) if len(values) <= MOST_WAYS:
                found = [one.value for one in values if isinstance(one, ast.Constant)]
                return [text for text in found if isinstance(text, str)] if len(found) == len(values) else []
        return []

    def _call(self, node: ast.Call) -> str:
        match node.func:
            case ast.Attribute(attr="join"):
                return _placeholder(node.args[0])
            case ast.Attribute(attr=attr) if attr in _TEXT_OF:
                return self.read(node.func.value)
            case ast.Name(id="duration"):
                return "{time}"
            case ast.Name(id=name) if self._depth < DEEPEST:
                if (found := self._sources.definition(self._module, name)) is not None:
                    module, function = found
                    if isinstance(function, Function) and _gives_text(function):
                        inside = self._deeper(module, function)
                        return _either([inside.read(value) for value in _returned(function)])
        return _placeholder(node)


def _joined(values: Sequence[ast.expr]) -> ast.expr:
    """The texts one after the other."""
    whole = values[0]
    for value in values[1:]:
        whole = ast.BinOp(whole, ast.Add(), value)
    return whole


def _either(texts: Sequence[str]) -> str:
    found = list(dict.fromkeys(texts))
    some = " | ".join(text for text in found if text)
    if "" in found:
        return f"[{some}]" if some else ""
    return some if len(found) == 1 else f"({some})"


def _placeholder(node: ast.AST) -> str:
    return "{" + (_named(node).strip("_").replace("_", " ") or "value") + "}"


def _named(node: ast.AST) -> str:
    """The word that tells best what an expression's value is."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(attr="__name__" | "strerror" | "orig" | "verify_message"):
            return "error"
        case ast.Attribute():
            return _named(node.value) if node.attr in _ITSELF and not _is_self(node.value) else node.attr
        case ast.Call():
            return _named_call(node)
    inner = _inside(node)
    return _named(inner) if inner is not None else ""


def _named_call(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id="len" | "sum") if node.args:
            return f"number of {_named(node.args[0])}"
        case ast.Attribute(attr="get" | "fromkeys") if node.args:
            return _named(node.args[-1])
    return _named(node.args[0] if node.args else node.func)


def _inside(node: ast.AST) -> ast.AST | None:
    """The part of an expression that it is named by."""
    match node:
        case ast.Starred() | ast.Subscript() | ast.Await() | ast.FormattedValue():
            return node.value
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
            return node.generators[0].iter
        case ast.BinOp():
            return node.left
        case ast.IfExp():
            return node.body
        case ast.JoinedStr() if node.values:
            return node.values[-1]
    return None


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_text(node: ast.AST) -> bool:
    """Whether the expression can be told to make text: a literal, or what is put together of one."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.JoinedStr():
            return True
        case ast.BinOp(op=ast.Add()):
            return any(
                isinstance(one, ast.JoinedStr | ast.Constant | ast.BinOp) and _is_text(one)
                for one in (node.left, node.right)
            )
        case ast.IfExp():
            return _is_text(node.body) or _is_text(node.orelse)
        case ast.BoolOp():
            return any(_is_text(value) for value in node.values)
        case ast.Subscript():
            return _is_text(node.value)
        case ast.Call(func=ast.Name()) | ast.Name():
            return True
    return False


def _gives_text(function: Function) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "str" and not function.decorator_list


def _returned(function: Function) -> Iterator[ast.expr]:
    yield from (node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None)


@cache
def _assignments(function: Function) -> list[tuple[ast.stmt | ast.expr, str, ast.expr]]:
    """The assignments of texts, in the order of lines: where, to which name, and what."""
    found: list[tuple[ast.stmt | ast.expr, str, ast.expr]] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(ast.Name(id=name), value):
                found.append((node, name, value))
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=False)
                found.extend((node, one.id, value) for one, value in pairs if isinstance(one, ast.Name))
            case ast.AugAssign(target=ast.Name(id=name), value=value) if _is_text(value):
                found.append((node, name, value))
    return sorted(found, key=lambda one: one[0].lineno)


@cache
def _branches(function: Function) -> list[ast.If | ast.Match]:
    """The branchings of a function, the outermost first."""
    return [node for node in ast.walk(function) if isinstance(node, ast.If | ast.Match)]


def _within(node: ast.stmt | ast.expr, outer: ast.stmt | ast.expr) -> bool:
    return node is outer or any(node is one for one in ast.walk(outer))


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _calls(tree: ast.Module) -> Iterator[tuple[Function, ast.Call]]:
    """Every call with the innermost function around it, in the module's order; calls outside functions are left out."""
    ahead: list[tuple[ast.AST, Function | None]] = [(tree, None)]
    while ahead:
        node, around = ahead.pop()
        if isinstance(node, ast.Call) and around is not None:
            yield around, node
        inside = node if isinstance(node, Function) else around
        ahead += [(child, inside) for child in ast.iter_child_nodes(node)][::-1]


def _called(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _argument(call: ast.Call, position: int, keyword: str, last: int) -> ast.expr | None:
    """The argument at a position; behind one that stands for several (`*place`) they are counted from the last."""
    named = next((one.value for one in call.keywords if one.arg == keyword), None)
    if named is not None:
        return named
    several = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)), None)
    if several is not None and position >= several:
        position = max(several, position - (last + 1 - len(call.args)))
    return call.args[position] if position < len(call.args) else None


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Definitions at the top of a module, by name."""
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        match node:
            case ast.ImportFrom():
                found |= {one.asname or one.name: node for one in node.names}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
    return found
