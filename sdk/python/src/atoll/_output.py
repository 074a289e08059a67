# SPDX-License-Identifier: Apache-2.0
"""A rich output of an execution: a chart, a table, an image, in one or several media types."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple, Union

_BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


@dataclass(frozen=True)
class Output:
    """One output, by media type; notebooks show it as it is.

    >>> chart = Output.from_json({"data": {"image/png": "iVBORw0=", "text/plain": "<Figure>"}})
    >>> chart.png[:4], chart.text, sorted(chart.data)
    (b'\\x89PNG', '<Figure>', ['image/png', 'text/plain'])
    """

    data: Dict[str, Any]
    metadata: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Output":
        """An output from the daemon's JSON object."""
        data = raw.get("data")
        return cls(dict(data) if isinstance(data, Mapping) else {}, dict(raw.get("metadata") or {}))

    def get(self, media_type: str) -> Union[bytes, str, Dict[str, Any], None]:
        """The output in a media type: bytes of an image, an object of JSON, else text; None where there is none."""
        content = self.data.get(media_type)
        if content is not None and media_type in _BINARY:
            return base64.b64decode(content)
        return content

    @property
    def png(self) -> Optional[bytes]:
        """The image, as a file's bytes."""
        return self._repr_png_()

    @property
    def svg(self) -> Optional[str]:
        """The drawing as SVG."""
        return self._repr_svg_()

    @property
    def html(self) -> Optional[str]:
        """The output as HTML. It comes from code that is not trusted: show it in a frame without scripts."""
        return self._repr_html_()

    @property
    def text(self) -> Optional[str]:
        """The output as plain text."""
        return self.data.get("text/plain")

    @property
    def json(self) -> Any:
        """The output as JSON: of plotly the figure."""
        return self.data.get("application/vnd.plotly.v1+json", self.data.get("application/json"))

    def _repr_png_(self) -> Optional[bytes]:
        content = self.data.get("image/png")
        return None if content is None else base64.b64decode(content)

    def _repr_jpeg_(self) -> Optional[bytes]:
        content = self.data.get("image/jpeg")
        return None if content is None else base64.b64decode(content)

    def _repr_svg_(self) -> Optional[str]:
        return self.data.get("image/svg+xml")

    def _repr_html_(self) -> Optional[str]:
        return self.data.get("text/html")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """What IPython asks for first."""
        del include, exclude
        return {name: self.get(name) if name in _BINARY else content for name, content in self.data.items()}, self.metadata
