"""Function host of existing apps: the engine of the Python SDK, behind the WSGI server of Python.

Prints its port as a line of JSON.
"""

import json
import os
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import leancloud
from leancloud.engine import Engine, LeanEngineError

leancloud.init(
    os.environ["LEANCLOUD_APP_ID"],
    app_key=os.environ["LEANCLOUD_APP_KEY"],
    master_key=os.environ["LEANCLOUD_APP_MASTER_KEY"],
    hook_key=os.environ["LEANCLOUD_APP_HOOK_KEY"],
)
engine = Engine(fetch_user=os.environ["FETCH_USER"] == "1")


@engine.define
def hello(name=None):
    return {"hello": name}


@engine.define
def fails():
    raise LeanEngineError(code=4711, message="This function fails.")


@engine.define
def crashes():
    raise ValueError("broken")


@engine.before_save("_User")
def before_save(user):
    if user.get("nickname") == "refused":
        raise LeanEngineError(code=1, message="no such nickname")
    user.set("seenBy", "python")


@engine.before_update("_User")
def before_update(user):
    if user.get("nickname") == "refused":
        raise LeanEngineError(code=1, message="no such nickname")


def nothing(user):
    pass


engine.after_save("_User")(nothing)
engine.after_update("_User")(nothing)
engine.before_delete("_User")(nothing)
engine.after_delete("_User")(nothing)
engine.on_login(nothing)
engine.on_auth_data(lambda auth_data: auth_data)
engine.on_verified("sms")(nothing)
engine.on_verified("email")(nothing)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def not_found(_, start_response):
    start_response("404 Not Found", [])
    return []


server = make_server("127.0.0.1", 0, engine.wrap(not_found), Server, Quiet)
print(json.dumps({"port": server.server_port}), flush=True)
sys.stderr = open(os.devnull, "w")
server.serve_forever()
