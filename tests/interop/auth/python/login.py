"""The Python SDK as a client that logs in: login.py URL REDIRECT. Prints the page for the person as "open URL", reads the
query of the redirect from stdin, then lists and calls, and prints what came."""
import sys
import warnings
from urllib.parse import parse_qs

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

warnings.simplefilter("ignore")


class Kept:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def show(url):
    print("open", url, flush=True)


async def redirected():
    query = parse_qs(await anyio.to_thread.run_sync(sys.stdin.readline), strict_parsing=True)
    return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0].strip(), iss=query.get("iss", [""])[0].strip() or None)


async def main(url, redirect):
    metadata = OAuthClientMetadata(client_name="Python", redirect_uris=[redirect], scope="weather:read")
    login = OAuthClientProvider(url, metadata, Kept(), show, redirected)
    async with httpx2.AsyncClient(auth=login) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            print("tools", len((await client.list_tools()).tools), flush=True)
            result = await client.call_tool("weather.get_weather", {"location": "Tokyo"})
            print("text", result.content[0].text, flush=True)


anyio.run(main, *sys.argv[1:])
