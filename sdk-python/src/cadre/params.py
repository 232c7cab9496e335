"""What the API takes below the arguments of methods, as typed dictionaries that are made from its contract."""

from ._generated.params import *  # noqa: F403
from ._generated.params import __all__ as __all__
