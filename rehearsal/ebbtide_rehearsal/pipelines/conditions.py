"""Task conditions: the subset of CEL that kfp's compiler writes.

kfp writes comparisons of an input parameter with a literal or with another parameter, `!(…)`, `&&`, and the
conversions `int()`, `double()`, `string()` and `bool()` (kfp 2.17.0, compiler/pipeline_spec_builder.py).
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ebbtide_rehearsal.pipelines.compiled import UnsupportedPipelineError

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|&&|\|\||!(?!=)|\btrue\b|\bfalse\b")
_PYTHON: Final = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "int": int,
    "double": float,
    "string": str,
    "bool": bool,
}


def holds(condition: str, parameters: Mapping[str, Any]) -> bool:
    """Evaluate a task's condition.

    Args:
        condition: CEL, as in `triggerPolicy.condition`; its strings are parsed as Python's.
        parameters: the values of the task's input parameters.

    Raises:
        UnsupportedPipelineError: it is outside the subset that kfp's compiler writes.
    """
    python = _TOKEN.sub(lambda match: _PYTHON.get(match[0], match[0]), condition)
    try:
        return bool(_value(ast.parse(python.strip(), mode="eval").body, parameters))
    except SyntaxError:
        raise UnsupportedPipelineError(f"A rehearsal cannot evaluate the condition {condition}") from None


def _value(node: ast.expr, parameters: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - a case each
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, parameters)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, parameters)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, parameters) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_value(value, parameters) for value in values)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARE:
            return _COMPARE[type(comparison)](_value(left, parameters), _value(right, parameters))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _CONVERT:
            return _CONVERT[name](_value(argument, parameters))
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="inputs"), attr="parameter_values"),
            slice=ast.Constant(value=str(name)),
        ):
            return parameters[name]
        case _:
            raise UnsupportedPipelineError(
                f"A rehearsal cannot evaluate the condition part {ast.unparse(node)}"
            )
