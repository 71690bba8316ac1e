"""Every name that leaves the process: spans, attributes, metrics and events, with type, unit and source.

Nothing else in the project spells one of these names. The tables in ``docs/attributes.md`` and ``docs/metrics.md``
are generated from the registries below.

Sources: ``genai`` is the OpenTelemetry GenAI semantic conventions, ``otel`` the general OpenTelemetry conventions,
``anthropic`` the attributes of the Anthropic SDK's own spans, ``claudescope`` this project.
"""

from .attributes import *  # noqa: F403 - all of it is names
from .metrics import *  # noqa: F403
from .registry import ATTRIBUTES as ATTRIBUTES
from .registry import EVENTS as EVENTS
from .registry import METRICS as METRICS
from .registry import Attribute as Attribute
from .registry import Event as Event
from .registry import Metric as Metric
