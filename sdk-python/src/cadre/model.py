"""The base of all models: an object of the API with its members as attributes."""

from __future__ import annotations

import typing as t

from .transport import Answer


class Model:
    """
    An object of the API. Its members are attributes and items: `task.status` is `task["status"]`. A known member that the
    response lacks is None; a member that this version does not know is kept as received.
    """

    #: Status, headers, request id and revision of the response with this object; None for nested objects.
    last_response: t.Optional[Answer] = None

    def __init__(self, members: t.Mapping[str, t.Any]) -> None:
        hints = _hints(type(self))
        for name, value in members.items():
            self.__dict__[name] = build(hints.get(name, t.Any), value)

    def __getattr__(self, name: str) -> t.Any:
        # Python calls this only for missing attributes.
        if name in _hints(type(self)):
            return None
        raise AttributeError(f"{type(self).__name__} has no member {name!r}")

    def __getitem__(self, name: str) -> t.Any:
        return _members(self)[name]

    def __contains__(self, name: object) -> bool:
        return name in _members(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Model):
            return _members(self) == _members(other)
        return isinstance(other, dict) and self.to_dict() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in _members(self).items())
        return f"{type(self).__name__}({members})"

    def to_dict(self) -> t.Dict[str, t.Any]:
        """The object as plain dictionaries and lists."""
        return {name: _plain(value) for name, value in _members(self).items()}


def build(hint: t.Any, value: t.Any) -> t.Any:
    """Converts a JSON value to a type hint: objects become models, also in lists and dictionaries."""
    if value is None or hint is t.Any:
        return value
    origin, args = t.get_origin(hint), t.get_args(hint)
    if origin is t.Union:
        return build(_choose(args, value), value)
    if origin is list and isinstance(value, list):
        return [build(args[0], one) for one in value]
    if origin is dict and isinstance(value, dict):
        return {name: build(args[1], one) for name, one in value.items()}
    if isinstance(hint, type) and issubclass(hint, Model) and isinstance(value, dict):
        return hint(value)
    return value


def encode(value: t.Any) -> t.Any:
    """For `json.dumps`, so that a model can be sent back."""
    if isinstance(value, Model):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r}")


def _choose(args: t.Tuple[t.Any, ...], value: t.Any) -> t.Any:
    """The type in a union that fits a value. Of several models whose literals match, it is the one with the most members of the value."""
    wanted = list if isinstance(value, list) else dict if isinstance(value, dict) else None
    if wanted is list:
        return next((arg for arg in args if t.get_origin(arg) is list), t.Any)
    if wanted is dict:
        models = [arg for arg in args if isinstance(arg, type) and issubclass(arg, Model)]
        fitting = [model for model in models if _agrees(model, value)]
        if fitting:
            return max(fitting, key=lambda model: len(value.keys() & _hints(model).keys()))
        free = next((arg for arg in args if t.get_origin(arg) is dict), None)
        # An object of a kind that this version does not know.
        return free or (Model if models else t.Any)
    return t.Any


def _agrees(model: t.Type[Model], value: t.Dict[str, t.Any]) -> bool:
    for name, hint in _hints(model).items():
        if t.get_origin(hint) is t.Literal and name in value and value[name] not in t.get_args(hint):
            return False
    return True


def _hints(model: t.Type[Model]) -> t.Dict[str, t.Any]:
    known = _hints_of.get(model)
    if known is None:
        # `last_response` is not a member of the API.
        known = {} if model is Model else t.get_type_hints(model)
        known.pop("last_response", None)
        _hints_of[model] = known
    return known


_hints_of: t.Dict[t.Type[Model], t.Dict[str, t.Any]] = {}


def _members(model: Model) -> t.Dict[str, t.Any]:
    return {name: value for name, value in model.__dict__.items() if name != "last_response"}


def _plain(value: t.Any) -> t.Any:
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
