# SPDX-License-Identifier: Apache-2.0
"""OAuth's protected resource metadata (RFC 9728): where a client of /mcp without a token learns who hands them out."""
import os

import pytest
from program import Atoll
from web import Served

TOKEN = "hidden-word-of-32-characters-0001"
RESOURCE = "https://sandbox.example.org/mcp"
ISSUER = "https://login.example.org"
PATHS = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp")
pytestmark = pytest.mark.modes("rootless")


@pytest.mark.parametrize("configured", [True, False])
def test_metadata(mode, stage, configured):
    work = stage.scratch(mode, "metadata")
    (work / "tokens").write_text(TOKEN + "\n")
    (work / "tokens").chmod(0o600)
    os.chown(work / "tokens", work.stat().st_uid, -1)
    options = ["--token-file", str(work / "tokens")]
    if configured:
        options += ["--set", f"mcp.resource={RESOURCE}", "--set", f"mcp.issuers={ISSUER}"]
    served = Served(Atoll(mode, stage), work, *options)
    try:
        served.web.token = None
        refused = served.web.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
        answers = [served.web.get(path) for path in PATHS]
    finally:
        served.end()
    assert refused.status == 401
    if configured:
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="https://sandbox.example.org{PATHS[1]}"'
        for answer in answers:
            assert answer.status == 200 and answer.json() == {
                "resource": RESOURCE, "authorization_servers": [ISSUER], "bearer_methods_supported": ["header"], "resource_name": "Atoll"}
    else:
        assert refused.headers["www-authenticate"] == "Bearer"
        assert [answer.status for answer in answers] == [404, 404]
