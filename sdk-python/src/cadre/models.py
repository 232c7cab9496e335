"""What the API answers, as classes that are made from its contract. Attributes have the names of the API."""

from ._generated.models import *  # noqa: F403
from ._generated.models import __all__ as __all__
