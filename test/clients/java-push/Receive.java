// Receives pushes with the Java SDK, and prints each check as a line of JSON.

import cn.leancloud.AVException;
import cn.leancloud.AVInstallation;
import cn.leancloud.AVLogger;
import cn.leancloud.Messages;
import cn.leancloud.callback.AVCallback;
import cn.leancloud.core.AVOSCloud;
import cn.leancloud.push.AVPushMessageListener;
import cn.leancloud.session.AVConnectionListener;
import cn.leancloud.session.AVConnectionManager;
import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Receive {
  static final String SERVER = System.getenv("CARILLON_URL");
  static final String APP_ID = System.getenv("APP_ID");
  static final HttpClient HTTP = HttpClient.newHttpClient();
  static final BlockingQueue<JSONObject> received = new LinkedBlockingQueue<>();
  static final AVConnectionManager connection = AVConnectionManager.getInstance();

  interface Work {
    void run() throws Exception;
  }

  public static void main(String[] args) {
    AVOSCloud.setLogLevel(AVLogger.Level.OFF);
    AVOSCloud.initialize(APP_ID, System.getenv("APP_KEY"), SERVER);
    listen();
    check("installations", "the device, in two channels", Receive::registers);
    check("route and login on the device channel", "opens the socket", Receive::connects);
    check("pushes over the device channel", "to all, acknowledged", Receive::pushToAll);
    check("pushes over the device channel", "to a channel, acknowledged", Receive::pushToChannel);
    check("pushes over the device channel", "what was sent while it was away", Receive::waiting);
    // Threads of the SDK would keep the process.
    System.exit(0);
  }

  static void check(String topic, String name, Work work) {
    JSONObject line = new JSONObject(true);
    line.put("topic", topic);
    line.put("check", name);
    try {
      work.run();
    } catch (Throwable error) {
      StringWriter text = new StringWriter();
      error.printStackTrace(new PrintWriter(text));
      line.put("error", text.toString());
    }
    System.out.println(line);
  }

  static void equal(Object actual, Object expected) {
    if (!Objects.equals(actual, expected)) {
      throw new AssertionError("got " + actual + " in place of " + expected);
    }
  }

  /** Records the pushes of each command, and lets the SDK's own listener acknowledge them. */
  static void listen() {
    AVPushMessageListener own = AVPushMessageListener.getInstance();
    connection.subscribeConnectionListener(AVPushMessageListener.DEFAULT_ID,
        new AVConnectionListener() {
          public void onWebSocketOpen() {}

          public void onWebSocketClose() {}

          public void onError(Integer key, Messages.ErrorCommand error) {}

          public void onMessageArriving(
              String peer, Integer key, Messages.GenericCommand command) {
            for (Messages.JsonObjectMessage one : command.getDataMessage().getMsgList()) {
              received.add(JSON.parseObject(one.getData()));
            }
            own.onMessageArriving(peer, key, command);
          }
        });
  }

  static JSONObject call(String method, String path, JSONObject body) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(SERVER + "/1.1" + path))
        .header("X-LC-Id", APP_ID)
        .header("X-LC-Key", System.getenv("MASTER_KEY") + ",master")
        .header("Content-Type", "application/json")
        .method(method, body == null ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(body.toString()))
        .build();
    HttpResponse<String> reply = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
    if (reply.statusCode() / 100 != 2) throw new AssertionError(reply.body());
    return JSON.parseObject(reply.body());
  }

  /** Sends a push. Returns its id. */
  static String push(String alert, String... channels) throws Exception {
    JSONObject body = new JSONObject();
    body.put("data", new JSONObject().fluentPut("alert", alert).fluentPut("n", 1));
    if (channels.length > 0) body.put("channels", channels);
    return call("POST", "/push", body).getString("objectId");
  }

  static JSONObject next() throws Exception {
    JSONObject message = received.poll(30, TimeUnit.SECONDS);
    if (message == null) throw new AssertionError("no push came");
    return message;
  }

  static void acknowledged(String id) throws Exception {
    JSONObject record = new JSONObject();
    for (int asked = 0; asked < 300; asked++) {
      record = call("GET", "/tables/Notifications/" + id, null);
      if (Integer.valueOf(1).equals(record.getInteger("lcSuccesses"))) return;
      Thread.sleep(100);
    }
    throw new AssertionError(record.toString());
  }

  static void connect() throws Exception {
    CompletableFuture<Void> opened = new CompletableFuture<>();
    connection.startConnection(new AVCallback<Void>() {
      @Override
      protected void internalDone0(Void none, AVException error) {
        if (error == null) opened.complete(null);
        else opened.completeExceptionally(error);
      }
    });
    opened.get(30, TimeUnit.SECONDS);
  }

  static void registers() throws Exception {
    AVInstallation device = AVInstallation.getCurrentInstallation();
    device.put("channels", new ArrayList<>(List.of("news", "sport")));
    device.save();
    device.removeAll("channels", List.of("sport"));
    device.save();
    // The SDK forgets the objectId of the reply: both saves are a POST with the installation id.
    JSONObject saved = call("GET", "/installations", null);
    equal(saved.getJSONArray("results").size(), 1);
    JSONObject one = saved.getJSONArray("results").getJSONObject(0);
    equal(one.get("channels"), List.of("news"));
    equal(one.getString("installationId"), device.getInstallationId());
    equal(one.getString("deviceType"), "android");
  }

  static void connects() throws Exception {
    connect();
    equal(connection.isConnectionEstablished(), true);
  }

  static void pushToAll() throws Exception {
    String id = push("to all");
    JSONObject message = next();
    equal(message.getString("alert") + message.getInteger("n"), "to all1");
    acknowledged(id);
  }

  static void pushToChannel() throws Exception {
    String id = push("to news", "news");
    JSONObject message = next();
    equal(message.getString("alert") + message.getString("_channel"), "to newsnews");
    acknowledged(id);
  }

  static void waiting() throws Exception {
    connection.resetConnection();
    equal(connection.isConnectionEstablished(), false);
    String id = push("while away");
    connect();
    equal(next().getString("alert"), "while away");
    acknowledged(id);
  }
}
