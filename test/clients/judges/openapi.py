"""Hooks of schemathesis: each call concerns the app under test, comes from an address of its own,
and names no address outside of this machine."""

import os
from itertools import count

import schemathesis

APP_ID = os.environ["APP_ID"]
NOWHERE = "http://127.0.0.1:9"
ADDRESSES = {"functionsUrl", "endpoint", "tokenEndpoint", "url", "issuer", "keysUrl"}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and "appId" in path_parameters:
        path_parameters["appId"] = APP_ID
    return path_parameters


def pinned(value):
    if isinstance(value, dict):
        return {
            name: NOWHERE if name in ADDRESSES and isinstance(member, str) else pinned(member)
            for name, member in value.items()
        }
    return [pinned(one) for one in value] if isinstance(value, list) else value


@schemathesis.hook
def map_body(context, body):
    return pinned(body)


serial = count()


@schemathesis.hook
def before_call(context, case, kwargs):
    # A new address each time: limits of one address have tests of their own.
    number = next(serial)
    address = "198.%d.%d.%d" % (18 + (number >> 16) % 2, number >> 8 & 255, number & 255)
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}
