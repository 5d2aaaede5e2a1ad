// Drives the Java SDK against a running service, and prints each check as a line of JSON.

import cn.leancloud.LCACL;
import cn.leancloud.LCCloud;
import cn.leancloud.LCCloudQuery;
import cn.leancloud.LCException;
import cn.leancloud.LCInstallation;
import cn.leancloud.LCLogger;
import cn.leancloud.LCObject;
import cn.leancloud.LCPush;
import cn.leancloud.LCQuery;
import cn.leancloud.LCRole;
import cn.leancloud.LCUser;
import cn.leancloud.core.LeanCloud;
import cn.leancloud.sms.LCCaptcha;
import cn.leancloud.sms.LCCaptchaDigest;
import cn.leancloud.sms.LCCaptchaOption;
import cn.leancloud.sms.LCSMS;
import cn.leancloud.sms.LCSMSOption;
import cn.leancloud.types.LCGeoPoint;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

public class Drive {
  static final String SERVER = System.getenv("CARILLON_URL");
  static final String APP_ID = System.getenv("APP_ID");
  static final String PASSWORD = "a password";
  static final HttpClient HTTP = HttpClient.newHttpClient();
  static int serial = 0;

  interface Work {
    void run() throws Exception;
  }

  public static void main(String[] args) {
    LeanCloud.setLogLevel(LCLogger.Level.OFF);
    LeanCloud.initialize(APP_ID, System.getenv("APP_KEY"), SERVER);
    check("sign-up", "a user with a password, and its operations", Drive::signsUp);
    check("sign-up", "deletes itself", Drive::deletesItself);
    check("login", "by name, address and number, with one session", Drive::logsIn);
    check("login", "a new session ends the one before", Drive::refreshesSession);
    check("login", "after a change of the password", Drive::changesPassword);
    check("login", "logs out", Drive::logsOut);
    check("become", "by a session token", Drive::becomes);
    check("codes by SMS", "sign-up and login", Drive::signsUpByPhone);
    check("codes by SMS", "login of a user with a verified number", Drive::logsInByCode);
    check("codes by SMS", "a code is verified", Drive::verifiesCode);
    check("codes by SMS", "the number of a user is verified", Drive::verifiesNumber);
    check("codes by SMS", "change of the number", Drive::changesNumber);
    check("codes by SMS", "reset of the password", Drive::resetsPasswordByCode);
    check("mail", "verification of an address, and reset of a password", Drive::mails);
    check("third-party accounts", "login, link, unlink, and an account of another user",
        Drive::thirdParty);
    check("third-party accounts", "a union id, and only users that exist", Drive::unionId);
    check("third-party accounts", "an anonymous user", Drive::anonymous);
    check("roles", "users and roles inside, relations, queries and their ACL", Drive::roles);
    check("queries", "conditions, order, pages, counts and keys", Drive::queries);
    check("queries", "CQL, subqueries and places", Drive::furtherQueries);
    check("queries", "strict queries of users", Drive::strictQueries);
    check("captcha", "image, answer, and a code that takes it", Drive::captcha);
    check("installations", "saved, changed, read and queried", Drive::installations);
    check("push", "by a query, by CQL, to a channel later", Drive::pushes);
    check("functions", "calls, objects by rpc, the stage, and errors", Drive::functions);
    check("errors", "codes and texts of refusals", Drive::errors);
    // Threads of the HTTP client would keep the process.
    System.exit(0);
  }

  static void check(String topic, String name, Work work) {
    Map<String, String> line = new LinkedHashMap<>(Map.of("topic", topic));
    line.put("check", name);
    try {
      work.run();
    } catch (Throwable error) {
      StringWriter text = new StringWriter();
      error.printStackTrace(new PrintWriter(text));
      line.put("error", text.toString().lines()
          .filter((one) -> !one.startsWith("\tat ") || one.contains("Drive"))
          .collect(Collectors.joining("\n")));
    }
    System.out.println(new Gson().toJson(line));
  }

  static String unique(String prefix) {
    return prefix + "-" + ++serial;
  }

  static String newPhone() {
    return String.format("+86139%08d", ++serial);
  }

  static void equal(Object actual, Object expected) {
    if (!Objects.equals(actual, expected)) {
      throw new AssertionError("got " + actual + " in place of " + expected);
    }
  }

  /** Expects a refusal with a code. Returns its text. */
  static String refused(int code, Work work) {
    try {
      work.run();
    } catch (Throwable error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (cause instanceof LCException refusal) {
          equal(refusal.getCode() + " " + refusal.getMessage(), code + " " + refusal.getMessage());
          return refusal.getMessage();
        }
      }
      throw new AssertionError("was not refused by the service", error);
    }
    throw new AssertionError("was not refused with " + code);
  }

  static void refused(int code, Work work, String text) {
    String message = refused(code, work);
    if (!message.contains(text)) throw new AssertionError(message);
  }

  static JsonObject request(HttpRequest.Builder request) throws Exception {
    HttpResponse<String> reply = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    if (reply.statusCode() / 100 != 2) throw new AssertionError(reply.body());
    return new Gson().fromJson(reply.body(), JsonObject.class);
  }

  static JsonObject admin(String method, String path, String body) throws Exception {
    return request(HttpRequest.newBuilder(URI.create(SERVER + "/console/api/apps/" + APP_ID + path))
        .header("Authorization", "Bearer " + System.getenv("ADMIN_TOKEN"))
        .header("Content-Type", "application/json")
        .method(method, body == null
            ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body)));
  }

  static String newest(String to, String member) throws Exception {
    JsonObject outbox = admin("GET", "/outbox?to=" + URLEncoder.encode(to, "UTF-8"), null);
    return outbox.getAsJsonArray("results").get(0).getAsJsonObject().get(member).getAsString();
  }

  static HttpResponse<byte[]> open(String url) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
    return HTTP.send(request, HttpResponse.BodyHandlers.ofByteArray());
  }

  static void asMaster(Work work) throws Exception {
    LeanCloud.setMasterKey(System.getenv("MASTER_KEY"));
    try {
      work.run();
    } finally {
      LeanCloud.setMasterKey("");
    }
  }

  static LCUser signUp(Map<String, Object> attributes) {
    LCUser.logOut();
    LCUser user = new LCUser();
    user.setUsername(unique("java"));
    user.setPassword(PASSWORD);
    attributes.forEach(user::put);
    user.signUp();
    // The SDK changes the current user on a login only.
    LCUser.changeCurrentUser(user, true);
    return user;
  }

  static LCUser signUp() {
    return signUp(Map.of());
  }

  static Set<String> platforms(LCUser user) {
    return new TreeSet<>(user.getJSONObject("authData").keySet());
  }

  // Sign-up

  static void signsUp() {
    LCUser user = signUp(Map.of("nick", "Tom", "born", new Date(946782245678L),
        "tags", List.of("a"), "settings", Map.of("a", 1)));
    equal(LCUser.getCurrentUser().getObjectId(), user.getObjectId());
    equal(user.isAuthenticated(), true);
    user.increment("visits");
    user.addUnique("tags", "b");
    user.save();
    user.add("tags", "c");
    user.save();
    user.removeAll("tags", List.of("a"));
    user.remove("nick");
    user.save();
    user.fetch();
    equal(user.getInt("visits"), 1);
    equal(user.getList("tags"), List.of("b", "c"));
    equal(user.getJSONObject("settings").getInteger("a"), 1);
    equal(user.getDate("born"), new Date(946782245678L));
    equal(user.get("nick"), null);
    equal(user.isMobilePhoneVerified(), false);
    equal(user.getCreatedAt().getTime() <= user.getUpdatedAt().getTime(), true);
  }

  static void deletesItself() {
    LCUser user = signUp();
    user.delete();
    LCUser.logOut();
    refused(211, () -> LCUser.becomeWithSessionToken(user.getSessionToken()));
  }

  // Login

  static void logsIn() {
    String phone = newPhone();
    String email = unique("mail") + "@example.com";
    LCUser user = signUp(Map.of("email", email, "mobilePhoneNumber", phone));
    for (LCUser again : List.of(
        LCUser.logIn(user.getUsername(), PASSWORD).blockingFirst(),
        LCUser.loginByEmail(email, PASSWORD).blockingFirst(),
        LCUser.loginByMobilePhoneNumber(phone, PASSWORD).blockingFirst())) {
      equal(again.getObjectId(), user.getObjectId());
      equal(again.getSessionToken(), user.getSessionToken());
      equal(again.getEmail() + again.getMobilePhoneNumber(), email + phone);
    }
    equal(user.checkAuthenticatedInBackground().blockingFirst(), true);
  }

  static void refreshesSession() {
    LCUser user = signUp();
    String old = user.getSessionToken();
    equal(user.refreshSessionTokenInBackground().blockingFirst(), true);
    equal(user.getSessionToken().equals(old), false);
    refused(211, () -> LCUser.becomeWithSessionToken(old));
  }

  static void changesPassword() {
    LCUser user = signUp();
    user.updatePasswordInBackground(PASSWORD, "another").blockingSubscribe();
    refused(210, () -> LCUser.logIn(user.getUsername(), PASSWORD).blockingFirst());
    LCUser again = LCUser.logIn(user.getUsername(), "another").blockingFirst();
    equal(again.getObjectId(), user.getObjectId());
    refused(210, () -> again.updatePasswordInBackground("wrong", "x").blockingFirst());
  }

  static void logsOut() {
    signUp();
    LCUser.logOut();
    equal(LCUser.getCurrentUser(), null);
  }

  static void becomes() throws Exception {
    LCUser user = signUp(Map.of("nick", "Tom"));
    LCUser.logOut();
    LCUser same = LCUser.becomeWithSessionToken(user.getSessionToken(), true);
    equal(same.getObjectId() + same.getString("nick"), user.getObjectId() + "Tom");
    equal(LCUser.getCurrentUser().getObjectId(), user.getObjectId());
    LCUser other = LCUser.createWithSessionToken(user.getObjectId(), user.getSessionToken());
    equal(((LCUser) other.fetch()).getUsername(), user.getUsername());
    refused(211, () -> LCUser.becomeWithSessionToken("x".repeat(25)));
  }

  // Codes by SMS

  static LCUser phoneUser(String phone) throws Exception {
    LCUser.logOut();
    LCSMS.requestSMSCodeInBackground(phone, new LCSMSOption()).blockingSubscribe();
    return LCUser.signUpOrLoginByMobilePhone(phone, newest(phone, "code"));
  }

  static void signsUpByPhone() throws Exception {
    String phone = newPhone();
    LCUser user = phoneUser(phone);
    equal(user.isMobilePhoneVerified(), true);
    equal(user.getMobilePhoneNumber(), phone);
    // The same number gets its next code after ten seconds only.
    refused(1, () -> LCUser.requestLoginSmsCodeInBackground(phone).blockingSubscribe(), "too fast");
  }

  /** A user with a number that the operator verified, and that got no message. */
  static LCUser userOfNumber(String phone) throws Exception {
    LCUser user = signUp(Map.of("mobilePhoneNumber", phone));
    admin("POST", "/users/" + user.getObjectId() + "/verify",
        "{\"contact\":\"mobilePhoneNumber\"}");
    LCUser.logOut();
    return user;
  }

  static void logsInByCode() throws Exception {
    String phone = newPhone();
    LCUser user = userOfNumber(phone);
    LCUser.requestLoginSmsCodeInBackground(phone).blockingSubscribe();
    String code = newest(phone, "code");
    equal(LCUser.loginBySMSCode(phone, code).blockingFirst().getObjectId(), user.getObjectId());
    refused(603, () -> LCUser.loginBySMSCode(phone, code).blockingFirst());
  }

  static void verifiesCode() throws Exception {
    String phone = newPhone();
    LCSMSOption option = new LCSMSOption();
    option.setApplicationName("An app");
    option.setOperation("a payment");
    option.setTtl(5);
    LCSMS.requestSMSCodeInBackground(phone, option).blockingSubscribe();
    equal(newest(phone, "text").contains("An app"), true);
    String code = newest(phone, "code");
    LCSMS.verifySMSCodeInBackground(code, phone).blockingSubscribe();
    refused(603, () -> LCSMS.verifySMSCodeInBackground("000000", phone).blockingFirst());
  }

  static void verifiesNumber() throws Exception {
    String phone = newPhone();
    LCUser user = signUp(Map.of("mobilePhoneNumber", phone));
    LCUser.requestMobilePhoneVerifyInBackground(phone).blockingSubscribe();
    LCUser.verifyMobilePhoneInBackground(newest(phone, "code")).blockingSubscribe();
    user.fetch();
    equal(user.isMobilePhoneVerified(), true);
  }

  static void changesNumber() throws Exception {
    LCUser user = phoneUser(newPhone());
    String another = newPhone();
    LCUser.requestSMSCodeForUpdatingPhoneNumberInBackground(another, new LCSMSOption())
        .blockingSubscribe();
    LCUser.verifySMSCodeForUpdatingPhoneNumberInBackground(newest(another, "code"), another)
        .blockingSubscribe();
    // The SDK keeps the number of the login as an own change of the user; fetch() leaves it there.
    LCUser same = LCUser.becomeWithSessionToken(user.getSessionToken());
    equal(same.getMobilePhoneNumber(), another);
  }

  static void resetsPasswordByCode() throws Exception {
    String phone = newPhone();
    LCUser user = userOfNumber(phone);
    LCUser.requestPasswordResetBySmsCodeInBackground(phone).blockingSubscribe();
    LCUser.resetPasswordBySmsCodeInBackground(newest(phone, "code"), "another")
        .blockingSubscribe();
    LCUser again = LCUser.loginByMobilePhoneNumber(phone, "another").blockingFirst();
    equal(again.getObjectId(), user.getObjectId());
  }

  static void mails() throws Exception {
    String email = unique("mail") + "@example.com";
    LCUser user = signUp(Map.of("email", email));
    equal(newest(email, "link").startsWith("http"), true);
    LCUser.requestEmailVerifyInBackground(email).blockingSubscribe();
    equal(open(newest(email, "link")).statusCode(), 200);
    user.fetch();
    equal(user.getBoolean("emailVerified"), true);
    LCUser.requestPasswordResetInBackground(email).blockingSubscribe();
    equal(open(newest(email, "link")).statusCode(), 200);
    refused(205,
        () -> LCUser.requestPasswordResetInBackground("nobody@example.com").blockingFirst());
  }

  // Third-party accounts

  static Map<String, Object> account() {
    return new HashMap<>(
        Map.of("openid", unique("openid"), "access_token", "token", "expires_in", 7200));
  }

  static void thirdParty() {
    LCUser.logOut();
    Map<String, Object> weixin = account();
    LCUser user = LCUser.loginWithAuthData(weixin, "weixin").blockingFirst();
    equal(user.isAuthenticated(), true);
    LCUser again = LCUser.loginWithAuthData(weixin, "weixin").blockingFirst();
    equal(again.getObjectId(), user.getObjectId());
    again.associateWithAuthData(account(), "qq").blockingSubscribe();
    LCUser both = LCUser.becomeWithSessionToken(again.getSessionToken(), true);
    equal(platforms(both), Set.of("qq", "weixin"));
    both.dissociateWithAuthData("qq").blockingSubscribe();
    equal(platforms(LCUser.becomeWithSessionToken(again.getSessionToken())), Set.of("weixin"));
    LCUser other = signUp();
    refused(208, () -> other.associateWithAuthData(weixin, "weixin").blockingFirst());
  }

  static void unionId() {
    LCUser.logOut();
    String union = unique("union");
    LCUser user = LCUser.loginWithAuthData(account(), "wxapp", union, "weixin", true)
        .blockingFirst();
    LCUser same = LCUser.loginWithAuthData(account(), "wxmini", union, "weixin", false)
        .blockingFirst();
    equal(same.getObjectId(), user.getObjectId());
    refused(211, () -> new LCUser().loginWithAuthData(account(), "qq", true).blockingFirst());
  }

  static void anonymous() {
    LCUser.logOut();
    LCUser user = LCUser.logInAnonymously().blockingFirst();
    equal(user.isAuthenticated() && user.isAnonymous(), true);
  }

  static void roles() {
    LCUser user = signUp();
    LCACL acl = new LCACL();
    acl.setPublicReadAccess(true);
    acl.setWriteAccess(user, true);
    LCRole role = new LCRole(unique("editors"), acl);
    role.getUsers().add(user);
    role.save();
    List<LCRole> own = user.getRolesInBackground().blockingFirst();
    equal(own.stream().map(LCRole::getName).toList(), List.of(role.getName()));
    LCRole child = new LCRole(unique("authors"), acl);
    child.save();
    role.getRoles().add(child);
    role.save();
    List<LCObject> inside = role.getRoles().getQuery().find();
    equal(inside.stream().map(LCObject::getObjectId).toList(), List.of(child.getObjectId()));
    LCRole found = LCRole.getQuery().whereEqualTo("name", role.getName())
        .includeACL(true).getFirst();
    equal(found.getObjectId(), role.getObjectId());
    equal(found.getACL().getWriteAccess(user), true);
    role.getUsers().remove(user);
    role.save();
    equal(user.getRolesInBackground().blockingFirst(), List.of());
    signUp();
    refused(403, role::delete);
  }

  // Queries

  static String usersWithNumbers(int count) {
    String mark = unique("mark");
    for (int number = 0; number < count; number++) {
      signUp(Map.of("mark", mark, "number", number, "even", number % 2 == 0,
          "place", new LCGeoPoint(1, number)));
    }
    return mark;
  }

  static LCQuery<LCUser> users(String mark) {
    return LCUser.getQuery().whereEqualTo("mark", mark);
  }

  static void finds(LCQuery<LCUser> query, Integer... numbers) {
    equal(query.find().stream().map((user) -> user.getInt("number")).toList(), List.of(numbers));
  }

  static void queries() {
    String mark = usersWithNumbers(4);
    equal(users(mark).count(), 4);
    finds(users(mark).orderByDescending("number").limit(2).skip(1), 2, 1);
    finds(users(mark).whereGreaterThan("number", 1).whereLessThanOrEqualTo("number", 2), 2);
    finds(users(mark).whereContainedIn("number", List.of(0, 3)).orderByAscending("number"), 0, 3);
    finds(users(mark).whereNotContainedIn("number", List.of(0, 3)).order("-number"), 2, 1);
    finds(users(mark).whereNotEqualTo("even", true).addAscendingOrder("number"), 1, 3);
    finds(users(mark).whereExists("nick"));
    equal(users(mark).whereDoesNotExist("nick").whereStartsWith("username", "java").count(), 4);
    equal(users(mark).whereMatches("username", "^JAVA", "i").count(), 4);
    equal(users(mark).whereContains("username", "ava-").count(), 4);
    LCQuery<LCUser> first = users(mark).whereEqualTo("number", 0);
    LCQuery<LCUser> last = users(mark).whereEqualTo("number", 3);
    finds(LCQuery.or(Arrays.asList(first, last)).orderByAscending("number"), 0, 3);
    LCQuery<LCUser> even = LCUser.getQuery().whereEqualTo("even", true);
    finds(LCQuery.and(Arrays.asList(users(mark), even)).orderByAscending("number"), 0, 2);
    LCUser one = users(mark).selectKeys(List.of("number")).getFirst();
    equal(one.has("number") && !one.has("mark"), true);
    equal(LCUser.getQuery().get(one.getObjectId()).getString("mark"), mark);
    refused(211, () -> LCUser.getQuery().get("0".repeat(24)));
  }

  static void furtherQueries() {
    String mark = usersWithNumbers(4);
    finds(users(mark).whereNear("place", new LCGeoPoint(1, 2)).limit(1), 2);
    finds(users(mark).whereWithinKilometers("place", new LCGeoPoint(1, 0), 50), 0);
    LCGeoPoint southwest = new LCGeoPoint(0, 0.5);
    finds(users(mark).whereWithinGeoBox("place", southwest, new LCGeoPoint(2, 1.5)), 1);
    LCUser friend = users(mark).whereEqualTo("number", 1).getFirst();
    LCUser owner = signUp(Map.of("friend", friend, "tags", List.of("a", "b")));
    LCQuery<LCUser> inner = users(mark);
    LCUser found = LCUser.getQuery().whereMatchesQuery("friend", inner).include("friend")
        .getFirst();
    equal(found.getObjectId(), owner.getObjectId());
    equal(((LCObject) found.getLCObject("friend")).getInt("number"), 1);
    equal(LCUser.getQuery().whereContainsAll("tags", List.of("a", "b")).count(), 1);
    equal(LCUser.getQuery().whereEqualTo("friend", friend).whereSizeEqual("tags", 2).count(), 1);
    String cql = "select * from _User where mark=? and number>?";
    equal(LCCloudQuery.executeInBackground(cql, LCUser.class, mark, 1).blockingFirst()
        .getResults().stream().map((user) -> user.getInt("number")).sorted().toList(),
        List.of(2, 3));
    cql = "select count(*) from _User where mark='" + mark + "'";
    equal(LCCloudQuery.executeInBackground(cql).blockingFirst().getCount(), 4);
  }

  static void strictQueries() throws Exception {
    String mark = usersWithNumbers(2);
    admin("PATCH", "", "{\"options\":{\"allowStrictUserQuery\":true}}");
    cn.leancloud.query.QueryConditions conditions = new cn.leancloud.query.QueryConditions();
    conditions.whereEqualTo("mark", mark);
    equal(LCUser.strictlyFind(conditions).blockingFirst().size(), 2);
  }

  static void captcha() throws Exception {
    admin("PATCH", "", "{\"options\":{\"captchaForSms\":true}}");
    LCSMSOption option = new LCSMSOption();
    refused(608, () -> LCSMS.requestSMSCodeInBackground(newPhone(), option).blockingFirst());
    LCCaptchaOption size = new LCCaptchaOption();
    size.setWidth(100);
    size.setHeight(50);
    LCCaptchaDigest image = LCCaptcha.requestCaptchaInBackground(size).blockingFirst();
    HttpResponse<byte[]> picture = open(image.getCaptchaUrl());
    equal(picture.headers().firstValue("content-type").orElse(""), "image/png");
    String answer = admin("GET", "/captchas/" + image.getCaptchaToken(), null)
        .get("code").getAsString();
    option.setCaptchaValidateToken(
        LCCaptcha.verifyCaptchaCodeInBackground(answer, image).blockingFirst().getValidateToken());
    String phone = newPhone();
    LCSMS.requestSMSCodeInBackground(phone, option).blockingSubscribe();
    LCSMS.verifySMSCodeInBackground(newest(phone, "code"), phone).blockingSubscribe();
    LCCaptchaDigest other = LCCaptcha.requestCaptchaInBackground(size).blockingFirst();
    refused(1, () -> LCCaptcha.verifyCaptchaCodeInBackground("!!!!", other).blockingFirst(),
        "captcha");
    admin("PATCH", "", "{\"options\":{\"captchaForSms\":false}}");
  }

  // Installations and push

  static LCInstallation device(String token) {
    LCInstallation device = new LCInstallation();
    // All objects of a process have its own installation id.
    device.put("installationId", unique("device"));
    device.put("deviceType", "ios");
    device.put("deviceToken", token);
    device.put("topic", "com.example.app");
    return device;
  }

  static void installations() throws Exception {
    LCInstallation current = LCInstallation.getCurrentInstallation();
    current.put("channels", List.of("public"));
    current.put("registrationId", "fcm-" + "x".repeat(30));
    current.put("vendor", "fcm");
    current.save();
    current.put("owner", signUp());
    current.addUnique("channels", "news");
    current.save();
    LCInstallation same = LCObject.createWithoutData(LCInstallation.class, current.getObjectId());
    same.fetch();
    equal(same.getList("channels"), List.of("public", "news"));
    equal(same.getString("deviceType"), "android");
    equal(same.getInstallationId(), current.getInstallationId());
    asMaster(() -> {
      LCQuery<LCInstallation> query = LCInstallation.getQuery().whereEqualTo("channels", "news");
      equal(query.getFirst().getObjectId(), current.getObjectId());
      equal(query.count(), 1);
    });
    current.removeAll("channels", List.of("news"));
    current.save();
    equal(((LCObject) current.fetch()).getList("channels"), List.of("public"));
  }

  /** Sends a push. Returns its id; the SDK has no call for the record. */
  static String send(LCPush push) {
    return push.sendInBackground().blockingFirst().getString("objectId");
  }

  static JsonObject recordOf(String id) throws Exception {
    return request(HttpRequest.newBuilder(URI.create(SERVER + "/1.1/tables/Notifications/" + id))
        .header("X-LC-Id", APP_ID)
        .header("X-LC-Key", System.getenv("APP_KEY")));
  }

  static void reachesOneDevice(String id) throws Exception {
    JsonObject record = recordOf(id);
    for (int asked = 0; asked < 200 && !status(record).equals("done"); asked++) {
      Thread.sleep(100);
      record = recordOf(id);
    }
    equal(status(record) + record.get("successes"), "done1");
  }

  static String status(JsonObject record) {
    return record.get("status").getAsString();
  }

  static void pushes() throws Exception {
    LCInstallation device = device(String.format("%064x", 7002));
    device.put("mark", "push");
    device.save();
    LCQuery<LCInstallation> query = LCInstallation.getQuery().whereEqualTo("mark", "push");
    refused(403, () -> LCPush.sendMessageInBackground("x", query).blockingFirst());
    asMaster(() -> {
      LCPush push = new LCPush();
      push.setQuery(query);
      push.setMessage("Hello");
      push.setPushToIOS(true);
      push.setiOSEnvironment(LCPush.iOSEnvironmentProd);
      push.setFlowControl(1000);
      reachesOneDevice(send(push));
      LCPush later = new LCPush();
      later.setChannel("public");
      later.setData(Map.of("alert", "Later"));
      later.setPushDate(new Date(System.currentTimeMillis() + 3_600_000));
      equal(status(recordOf(send(later))), "scheduled");
      LCPush byCql = new LCPush();
      byCql.setCloudQuery("select * from _Installation where mark='push'");
      byCql.setMessage("x");
      byCql.setExpirationTimeInterval(60);
      byCql.setNotificationId("javaPush");
      byCql.setRequestId("javaRequest");
      reachesOneDevice(send(byCql));
    });
  }

  // Functions

  static Map<String, Object> call(String name, Map<String, Object> parameters) {
    Map<String, Object> result =
        LCCloud.<Map<String, Object>>callFunctionInBackground(name, parameters).blockingFirst();
    return result;
  }

  static void functions() {
    Map<String, Object> echoed = call("echo", Map.of("text", "text", "items", List.of(1, "a")));
    equal(echoed.get("text"), "text");
    equal(echoed.get("items").toString(), "[1, a]");
    LCUser user = signUp();
    equal(call("whoami", Map.of()).get("user"), user.getObjectId());
    LCObject thing = LCCloud.<LCObject>callRPCInBackground("things", Map.of()).blockingFirst();
    equal(thing.getObjectId() + thing.getString("colour"), "abcred");
    equal(thing.getDate("when"), new Date(1767323045678L));
    List<LCObject> many = LCCloud.<List<LCObject>>callRPCInBackground("things",
        Map.of("many", true)).blockingFirst();
    equal(many.stream().map(LCObject::getObjectId).toList(), List.of("abc", "abc"));
    LCCloud.setProductionMode(false);
    equal(call("whoami", Map.of()).get("stage").toString(), "0");
    LCCloud.setProductionMode(true);
    refused(4711, () -> call("refuses", Map.of()), "not today");
    refused(1, () -> call("nothing", Map.of()));
  }

  // Errors

  static void errors() throws Exception {
    LCUser user = signUp();
    LCUser second = new LCUser();
    second.setUsername(user.getUsername());
    second.setPassword("x");
    refused(202, second::signUp, "Username has already been taken");
    refused(210, () -> LCUser.logIn(user.getUsername(), "wrong").blockingFirst());
    refused(211, () -> LCUser.logIn("nobody-at-all", "wrong").blockingFirst());
    refused(127, () -> LCSMS.requestSMSCodeInBackground("12", new LCSMSOption()).blockingFirst());
    refused(125, () -> signUp(Map.of("email", "no address")));
    refused(105, () -> signUp(Map.of("a-b", 1)));
    LCUser.logOut();
    user.put("nick", "x");
    refused(206, user::save);
    equal(LeanCloud.getServerDateInBackground().blockingFirst().getDate() != null, true);
  }
}
