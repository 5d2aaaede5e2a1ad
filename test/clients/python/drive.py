"""Drives the Python SDK against a running service, and prints each check as a line of JSON."""

import json
import os
import time
import traceback
from datetime import datetime, timedelta
from urllib.parse import quote

import requests

SERVER = os.environ["CARILLON_URL"]
os.environ["LC_API_SERVER"] = SERVER

import leancloud  # noqa: E402 (reads the variable above)
from leancloud import Installation, Query, Role, User, cloud, push  # noqa: E402

APP_ID = os.environ["APP_ID"]
ADMIN = {"Authorization": "Bearer " + os.environ["ADMIN_TOKEN"]}
leancloud.init(APP_ID, app_key=os.environ["APP_KEY"], master_key=os.environ["MASTER_KEY"])
leancloud.use_master_key(False)
PASSWORD = "a password"
serial = 0


def unique(prefix):
    global serial
    serial += 1
    return "%s-%d" % (prefix, serial)


def new_phone():
    global serial
    serial += 1
    return "+86139%08d" % serial


def check(topic, name, work):
    line = {"topic": topic, "check": name}
    try:
        work()
    except Exception:
        line["error"] = traceback.format_exc(limit=-3)
    print(json.dumps(line), flush=True)


def refused(code, work, text=None):
    """Expects a refusal with a code, and a part of its text."""
    try:
        work()
    except leancloud.LeanCloudError as error:
        assert error.code == code, (error.code, error.error)
        assert text is None or text in error.error, error.error
        return
    raise AssertionError("was not refused with %s" % code)


def newest_message(to):
    return admin("GET", "/outbox?to=" + quote(to))["results"][0]


def admin(method, path, body=None):
    url = SERVER + "/console/api/apps/" + APP_ID + path
    reply = requests.request(method, url, json=body, headers=ADMIN)
    assert reply.ok, reply.text
    return reply.json()


def sign_up(**attributes):
    user = User()
    user.set_username(unique("python"))
    user.set_password(PASSWORD)
    for name, value in attributes.items():
        user.set(name, value)
    user.sign_up()
    return user


def phone_user():
    phone = new_phone()
    cloud.request_sms_code(phone)
    user = User.signup_or_login_with_mobile_phone(phone, newest_message(phone)["code"])
    return user, phone


def as_client():
    leancloud.use_master_key(False)


def as_master():
    leancloud.use_master_key(True)


# Sign-up


def signs_up():
    user = sign_up(nick="Tom", born=datetime(2000, 1, 2), tags=["a"], settings={"a": 1})
    assert user.id and user.get_session_token() and User.get_current() is user
    user.increment("visits")
    user.add_unique("tags", "b")
    user.save()
    user.fetch()
    assert user.get("visits") == 1 and user.get("tags") == ["a", "b"]
    assert user.get("settings") == {"a": 1}
    assert user.get("mobilePhoneVerified") is False
    assert user.created_at is not None and user.is_authenticated()


def deletes_itself():
    user = sign_up()
    user.destroy()
    refused(211, lambda: User.become(user.get_session_token()))


check("sign-up", "a user with a password, its operations and its own deletion", signs_up)
check("sign-up", "deletes itself", deletes_itself)

# Login


def logs_in():
    phone, email = new_phone(), unique("mail") + "@example.com"
    user = sign_up(email=email, mobilePhoneNumber=phone)
    token = user.get_session_token()
    for login in (
        lambda one: one.login(user.get_username(), PASSWORD),
        lambda one: one.login(email=email, password=PASSWORD),
    ):
        again = User()
        login(again)
        assert (again.id, again.get_session_token()) == (user.id, token)
    assert User.login_with_mobile_phone(phone, PASSWORD).id == user.id


def refreshes_session():
    user = sign_up()
    old = user.get_session_token()
    user.refresh_session_token()
    assert user.get_session_token() != old
    refused(211, lambda: User.become(old))


def changes_password():
    user = sign_up()
    user.update_password(PASSWORD, "another")
    refused(210, lambda: User().login(user.get_username(), PASSWORD))
    again = User()
    again.login(user.get_username(), "another")
    assert again.id == user.id
    refused(210, lambda: again.update_password("wrong", "x"))


def logs_out():
    user = sign_up()
    user.logout()
    assert User.get_current() is None


check("login", "by name, address and number, with one session", logs_in)
check("login", "a new session ends the one before", refreshes_session)
check("login", "after a change of the password", changes_password)
check("login", "logs out", logs_out)


def becomes():
    user = sign_up(nick="Tom")
    same = User.become(user.get_session_token())
    assert same.id == user.id and same.get("nick") == "Tom" and User.get_current() is same
    refused(211, lambda: User.become("x" * 25))


check("become", "by a session token", becomes)

# Codes by SMS


def signs_up_by_phone():
    user, phone = phone_user()
    assert user.get("mobilePhoneVerified") is True and user.get_mobile_phone_number() == phone
    # The same number gets its next code after ten seconds only.
    refused(1, lambda: User.request_login_sms_code(phone), "too fast")


def verified_user():
    phone = new_phone()
    user = sign_up(mobilePhoneNumber=phone)
    User.request_mobile_phone_verify(phone)
    User.verify_mobile_phone_number(newest_message(phone)["code"], phone)
    return user, phone


def verifies_code():
    phone = new_phone()
    cloud.request_sms_code(phone)
    assert cloud.verify_sms_code(phone, newest_message(phone)["code"])
    refused(603, lambda: cloud.verify_sms_code(phone, "000000"))


def verifies_number():
    user, _ = verified_user()
    user.fetch()
    assert user.get("mobilePhoneVerified") is True


def changes_number():
    user, phone = phone_user()
    another = new_phone()
    User.request_change_phone_number(another)
    User.change_phone_number(newest_message(another)["code"], another)
    assert User.become(user.get_session_token()).get_mobile_phone_number() == another


def resets_password_by_code():
    phone = new_phone()
    user = sign_up(mobilePhoneNumber=phone)
    admin("POST", "/users/" + user.id + "/verify", {"contact": "mobilePhoneNumber"})
    User.request_password_reset_by_sms_code(phone)
    User.reset_password_by_sms_code(newest_message(phone)["code"], PASSWORD, phone)
    assert User.login_with_mobile_phone(phone, PASSWORD).get_mobile_phone_number() == phone


check("codes by SMS", "sign-up and login", signs_up_by_phone)
check("codes by SMS", "a code is verified", verifies_code)
check("codes by SMS", "the number of a user is verified", verifies_number)
check("codes by SMS", "change of the number", changes_number)
check("codes by SMS", "reset of the password", resets_password_by_code)


def mails():
    email = unique("mail") + "@example.com"
    user = sign_up(email=email)
    first = newest_message(email)["link"]
    User.request_email_verify(email)
    link = newest_message(email)["link"]
    assert link.startswith("http") and first.startswith("http")
    assert requests.get(link.replace("http://carillon.test", SERVER)).status_code == 200
    user.fetch()
    assert user.get("emailVerified") is True
    User.request_password_reset(email)
    assert newest_message(email)["link"].startswith("http")
    refused(205, lambda: User.request_password_reset("nobody@example.com"))


check("mail", "verification of an address, and reset of a password", mails)

# Third-party accounts


def third_party():
    entry = {"openid": unique("openid"), "access_token": "token", "expires_in": 7200}
    user = User.login_with("weixin", dict(entry))
    assert user.get_session_token() and user.is_linked("weixin")
    again = User.login_with("weixin", dict(entry))
    assert again.id == user.id
    again.link_with("qq", {"openid": unique("openid"), "access_token": "token"})
    fetched = User.become(again.get_session_token())
    assert sorted(fetched.get("authData")) == ["qq", "weixin"]
    fetched.unlink_from("qq")
    assert sorted(User.become(fetched.get_session_token()).get("authData")) == ["weixin"]
    other = sign_up()
    refused(208, lambda: other.link_with("weixin", dict(entry)))


check("third-party accounts", "login, link, unlink, and an account of another user", third_party)

# Roles


def roles():
    user = sign_up()
    acl = leancloud.ACL()
    acl.set_public_read_access(True)
    acl.set_write_access(user.id, True)
    role = Role(unique("editors"), acl)
    role.get_users().add(user)
    role.save()
    assert [one.get("name") for one in user.get_roles()] == [role.get_name()]
    child = Role(unique("authors"), acl)
    child.save()
    role.get_roles().add(child)
    role.save()
    assert [one.id for one in role.get_roles().query.find()] == [child.id]
    found = Query(Role).equal_to("name", role.get_name()).find()
    assert [one.id for one in found] == [role.id]
    role.get_users().remove(user)
    role.save()
    assert user.get_roles() == []
    sign_up()
    refused(403, role.destroy)


check("roles", "users and roles inside, relations, queries and their ACL", roles)

# Queries


def queries():
    mark = unique("mark")
    for number in range(4):
        sign_up(mark=mark, number=number, even=number % 2 == 0, place=leancloud.GeoPoint(1, number))

    def users():
        return Query(User).equal_to("mark", mark)

    assert users().count() == 4
    numbers = lambda query: [one.get("number") for one in query.find()]  # noqa: E731
    assert numbers(users().add_descending("number").limit(2).skip(1)) == [2, 1]
    assert numbers(users().greater_than("number", 1).less_than("number", 3)) == [2]
    assert numbers(users().contained_in("number", [0, 3]).ascending("number")) == [0, 3]
    assert numbers(users().not_equal_to("even", True).ascending("number")) == [1, 3]
    first, last = users().equal_to("number", 0), users().equal_to("number", 3)
    assert numbers(Query.or_(first, last).ascending("number")) == [0, 3]
    assert numbers(Query.and_(users(), users().equal_to("even", True)).ascending("number")) == [0, 2]
    assert users().matched("username", "^python").count() == 4
    assert users().startswith("username", "python").count() == 4
    assert numbers(users().near("place", leancloud.GeoPoint(1, 2)).limit(1)) == [2]
    one = users().select("number").first()
    assert one.get("number") is not None and one.get("mark") is None
    assert Query(User).get(one.id).get("mark") == mark
    refused(101, Query(User).equal_to("mark", "nobody").first)
    found = Query.do_cloud_query("select * from _User where mark=? and number>?", mark, 1)
    assert sorted(user.get("number") for user in found.results) == [2, 3]


def scans():
    mark = unique("mark")
    for _ in range(3):
        sign_up(mark=mark)
    User.set_current(None)
    as_master()
    try:
        assert len(list(Query(User).equal_to("mark", mark).scan(batch_size=2))) == 3
    finally:
        as_client()


check("queries", "conditions, order, pages, counts, keys and CQL", queries)
check("queries", "a scan of all users, by the master key", scans)

# Captcha


def captcha():
    admin("PATCH", "", {"options": {"captchaForSms": True}})
    refused(608, lambda: cloud.request_sms_code(new_phone()))
    image = cloud.request_captcha(width=100, height=50)
    reply = requests.get(image.url)
    assert reply.headers["content-type"] == "image/png"
    solved = image.verify(admin("GET", "/captchas/" + image.token)["code"])
    phone = new_phone()
    cloud.request_sms_code(phone, validate_token=solved)
    assert cloud.verify_sms_code(phone, newest_message(phone)["code"])
    other = cloud.request_captcha()
    refused(1, lambda: other.verify("!!!!"), "captcha")
    admin("PATCH", "", {"options": {"captchaForSms": False}})


check("captcha", "image, answer, and a code that takes it", captcha)

# Installations and push


def installations():
    device = Installation()
    device.set("deviceType", "ios")
    device.set("deviceToken", "%064x" % 7001)
    device.set("channels", ["public"])
    device.set("topic", "com.example.app")
    device.save()
    device.set("owner", sign_up())
    device.add_unique("channels", "news")
    device.save()
    same = Installation.create_without_data(device.id)
    same.fetch()
    assert same.get("channels") == ["public", "news"] and same.get("deviceToken") == "%064x" % 7001
    as_master()
    try:
        found = Query("_Installation").equal_to("channels", "news").find()
        assert [one.id for one in found] == [device.id]
    finally:
        as_client()


def pushes():
    device = Installation()
    device.set("deviceType", "ios")
    device.set("deviceToken", "%064x" % 7002)
    device.set("topic", "com.example.app")
    device.set("mark", "push")
    device.save()
    as_master()
    try:
        sent = push.send({"alert": "Hello"}, where=Query("_Installation").equal_to("mark", "push"))
        for _ in range(200):
            sent.fetch()
            if sent.get("status") == "done":
                break
            time.sleep(0.1)
        assert (sent.get("status"), sent.get("successes")) == ("done", 1), sent.dump()
        later = datetime.now() + timedelta(hours=1)
        planned = push.send({"alert": "Later"}, channels=["public"], push_time=later)
        planned.fetch()
        assert planned.get("status") == "scheduled"
        cql = "select * from _Installation where mark='push'"
        assert push.send({"alert": "x"}, cql=cql, expiration_interval=60, flow_control=1000).id
    finally:
        as_client()


check("installations", "saved, changed, read and queried", installations)
check("push", "by a query, by CQL, to a channel later", pushes)

# Functions


def functions():
    assert cloud.run("echo", text="text", items=[1, {"a": None}]) == {"text": "text", "items": [1, {"a": None}]}
    user = sign_up()
    assert cloud.run("whoami")["user"] == user.id
    thing = cloud.rpc("things")
    assert thing.id == "abc" and thing.get("colour") == "red"
    assert len(cloud.rpc("things", many=True)) == 2
    leancloud.use_production(False)
    assert cloud.run("whoami")["stage"] == 0
    leancloud.use_production(True)
    refused(4711, lambda: cloud.run("refuses"), "not today")
    refused(1, lambda: cloud.run("nothing"))


check("functions", "calls, objects by rpc, the stage, and errors", functions)

# Errors


def errors():
    user = sign_up()
    refused(202, lambda: User().sign_up(user.get_username(), "x"), "Username has already been taken")
    refused(210, lambda: User().login(user.get_username(), "wrong"))
    refused(211, lambda: User().login("nobody-at-all", "wrong"))
    refused(206, lambda: changes_of_another(user))
    refused(127, lambda: cloud.request_sms_code("+8612"))
    refused(125, lambda: sign_up(email="no address"))
    refused(105, lambda: sign_up(**{"a-b": 1}))
    assert cloud.get_server_time() is not None


def changes_of_another(user):
    sign_up()
    user.set("nick", "x")
    user.save()


check("errors", "codes and texts of refusals", errors)
