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


# Refusals of calls that meet the description: rules that a schema cannot express, and states. By
# code, with a part of the text for codes of several rules.
EXPLAINED = {
    1: (
        "Could not find object by id",  # An object that does not exist.
        "Please enable the option",  # An option of the app.
        "The request must be signed by master key",
        "A profile name is",  # A part of the path.
        "The name of a webhook",
        "signingSecret: only the formats",  # Members that go with a format.
        "is for programs. The format",
        "is neither a variable of the text",  # `providers` of a template.
        "The first day of a report",
        "A report has at most",
        "The id of a scheduled push",
        "expression: expected five fields",  # The grammar of cron.
        "Role ACL is required",  # Not with the master key.
        "The iOS certificate file is expired",  # An app without a profile.
        "A password is changed through updatePassword",
        "data: ",  # Of several members one is needed.
        "expiration_time and expiration_interval exclude each other",
        "variables: a name has",
        "A template must not hold",
        "is no member of a push",
        "`to` must be after `from`",
        "Objects are children of each other",  # Batches.
        "timestamp: the activity has got",  # States of Live Activities and devices.
        "Only Apple devices have",
        "topic: the profile",
        "activityId: expected",
        "APNs refused the call",
        "status.",  # A list of words in a text of the query.
    ),
    102: ("",),  # JSON in a text of the query.
    105: ("",),  # Lists of names in a text of the query.
    107: ("pvalues must be a list",),  # JSON in a text of the query.
    111: (
        "deviceType must be one of",  # What a new installation needs.
        "installationId",
        "objectId must be the id of an object",  # Values with `__type`.
        "roles is a relation",  # Lists of pointers.
        "users is a relation",
        "name: must not hold control characters",
        "it holds the character",  # U+0000
        "expiration_time: must be a time",  # Times in several forms.
        "expirationTime: must be a time",
        "push_time: must be a time",
        "auth must be",  # One of two kinds of credentials.
        "subscription",  # Endpoints of listed services, points on a curve.
        "vendor must be webpush",
        "registrationId must not be given",
        "is required with the event",  # Members that depend on another.
        "goes with the event end only",
        "exclude each other",
        "give either",
        "expected a time between the years",
    ),
    112: ("",),  # Chinese characters in names of channels.
    119: ("",),  # Calls that the app does not allow to clients.
    125: ("",),  # Mail addresses of mailboxes that can exist.
    127: ("",),  # Numbers that a country has given out.
    152: ("push_time: it is past", "push_time is required"),
    137: ("",),  # Names, addresses and numbers that somebody has.
    200: ("",),  # `username`, or `authData`, or a number.
    201: ("",),
    202: ("",),
    203: ("",),
    214: ("",),
    205: ("",),  # Accounts, codes and numbers that do not exist.
    210: ("",),
    211: ("",),
    212: ("",),
    213: ("",),
    300: ("",),  # The grammar of CQL.
    603: ("",),
}


def is_negative(case):
    generation = case.meta.generation if case.meta else None
    return generation is not None and not generation.mode.is_positive


@schemathesis.check
def accepts_valid(ctx, response, case):
    if response.status_code != 400 or case.meta is None or is_negative(case):
        return
    body = response.json()
    texts = EXPLAINED.get(body.get("code"), ())
    if not any(text in body.get("error", "") for text in texts):
        raise AssertionError("a call that meets the description is refused: %s" % body)


# A wrong call in a batch is answered in its place, and unknown parameters of a query are ignored.
@schemathesis.hook
def filter_case(context, case):
    if not is_negative(case):
        return True
    known = {parameter.name for parameter in case.operation.query}
    return not case.operation.path.startswith("/1.1/batch") and set(case.query or {}) <= known
