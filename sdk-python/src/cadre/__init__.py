"""Client of the Cadre API: typed methods and models, retries, pages, streams that resume, webhooks. No dependencies."""

from ._version import __version__
from .client import Cadre, Project
from .errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    CadreError,
    ConflictError,
    InternalServerError,
    Issue,
    NotFoundError,
    PermissionDeniedError,
    PreconditionFailedError,
    RateLimitError,
    UnprocessableEntityError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from .model import Model
from .paging import Page, PagedList
from .resource import OMIT, Options
from .serving import ServedToolCall, ToolHandler
from .streams import ProjectStream, ProjectStreamEvent, TaskStream, TaskStreamEvent, is_finished
from .transport import Response
from .webhooks import verify_webhook

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "Cadre",
    "CadreError",
    "ConflictError",
    "InternalServerError",
    "Issue",
    "Model",
    "NotFoundError",
    "OMIT",
    "Options",
    "Page",
    "PagedList",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "Project",
    "ProjectStream",
    "ProjectStreamEvent",
    "RateLimitError",
    "Response",
    "ServedToolCall",
    "TaskStream",
    "TaskStreamEvent",
    "ToolHandler",
    "UnprocessableEntityError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "__version__",
    "is_finished",
    "verify_webhook",
]
