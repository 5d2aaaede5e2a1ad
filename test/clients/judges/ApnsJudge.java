// Mock server of pushy (https://github.com/jchambers/pushy), which judges requests as APNs does.
//
// Usage: ApnsJudge <folder> <port>. The folder has the files server.crt and server.key (PEM), and
// `rules`, whose lines are
//   key <key id> <team id> <file of the public key> <topic>...
//   device <topic> <token>
//   unregistered <token> <milliseconds since 1970>
// Prints `ready`, and each request as a line of JSON with the reason of its refusal, or null.

import com.eatthepath.pushy.apns.auth.ApnsVerificationKey;
import com.eatthepath.pushy.apns.server.MockApnsServerBuilder;
import com.eatthepath.pushy.apns.server.PushNotificationHandler;
import com.eatthepath.pushy.apns.server.PushNotificationHandlerFactory;
import com.eatthepath.pushy.apns.server.RejectedNotificationException;
import com.eatthepath.pushy.apns.server.RejectionReason;
import com.eatthepath.pushy.apns.server.MockApnsServerListener;
import com.eatthepath.pushy.apns.server.ValidatingPushNotificationHandlerFactory;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.math.BigInteger;
import java.nio.file.Files;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.net.ssl.SSLSession;

public class ApnsJudge {
  static final List<String> SHOWN = List.of("apns-id", "apns-topic",
      "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id");

  public static void main(String[] args) throws Exception {
    File folder = new File(args[0]);
    new MockApnsServerBuilder()
        .setServerCredentials(
            new File(folder, "server.crt"), new File(folder, "server.key"), null)
        .setHandlerFactory(withAppleForms(rulesIn(folder)))
        .setListener(new Printer())
        .setUseAlpn(true)
        .build().start(Integer.parseInt(args[1])).get();
    System.out.println("ready");
    // Ends with the test, which closes the standard input.
    while (System.in.read() >= 0) {}
    System.exit(0);
  }

  static ValidatingPushNotificationHandlerFactory rulesIn(File folder) throws Exception {
    Map<String, Set<String>> devices = new HashMap<>();
    Map<String, Instant> unregistered = new HashMap<>();
    Map<String, ApnsVerificationKey> keys = new HashMap<>();
    Map<ApnsVerificationKey, Set<String>> topics = new HashMap<>();
    for (String line : Files.readAllLines(new File(folder, "rules").toPath())) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "device" -> devices.computeIfAbsent(words[1], (one) -> new HashSet<>()).add(words[2]);
        case "unregistered" ->
            unregistered.put(words[1], Instant.ofEpochMilli(Long.parseLong(words[2])));
        case "key" -> {
          FileInputStream pem = new FileInputStream(new File(folder, words[3]));
          ApnsVerificationKey key =
              ApnsVerificationKey.loadFromInputStream(pem, words[2], words[1]);
          keys.put(words[1], key);
          topics.put(key, new HashSet<>(Arrays.asList(words).subList(4, words.length)));
        }
        default -> throw new IllegalArgumentException(line);
      }
    }
    return new ValidatingPushNotificationHandlerFactory(devices, unregistered, keys, topics);
  }

  /**
   * Translates what Apple takes into what pushy knows: signatures are r and s (RFC 7518 3.4) where
   * pushy verifies DER, and the push types `controls` and `widgets` and the priority 1 came later.
   */
  static PushNotificationHandlerFactory withAppleForms(PushNotificationHandlerFactory rules) {
    return (SSLSession session) -> {
      PushNotificationHandler handler = rules.buildHandler(session);
      return (Http2Headers given, ByteBuf body) -> {
        Http2Headers headers = new DefaultHttp2Headers(false).setAll(given);
        CharSequence token = given.get("authorization");
        if (token != null) headers.set("authorization", derSigned(token.toString()));
        String type = String.valueOf(given.get("apns-push-type"));
        if (type.equals("controls") || type.equals("widgets")) {
          headers.set("apns-push-type", "background");
        }
        if ("1".contentEquals(headers.get("apns-priority", ""))) headers.set("apns-priority", "5");
        handler.handlePushNotification(headers, body);
      };
    };
  }

  static String derSigned(String authorization) throws RejectedNotificationException {
    String[] parts = authorization.split("\\.");
    byte[] pair = parts.length == 3 ? Base64.getUrlDecoder().decode(parts[2]) : new byte[0];
    if (pair.length != 64) {
      throw new RejectedNotificationException(RejectionReason.INVALID_PROVIDER_TOKEN);
    }
    ByteArrayOutputStream sequence = new ByteArrayOutputStream();
    for (int start = 0; start < 64; start += 32) {
      byte[] number = new BigInteger(1, Arrays.copyOfRange(pair, start, start + 32)).toByteArray();
      sequence.write(2);
      sequence.write(number.length);
      sequence.writeBytes(number);
    }
    ByteArrayOutputStream der = new ByteArrayOutputStream();
    der.write(0x30);
    der.write(sequence.size());
    der.writeBytes(sequence.toByteArray());
    String signature = Base64.getUrlEncoder().withoutPadding().encodeToString(der.toByteArray());
    return parts[0] + "." + parts[1] + "." + signature;
  }

  static class Printer implements MockApnsServerListener {
    @Override
    public void handlePushNotificationAccepted(Http2Headers headers, ByteBuf body) {
      print(headers, body, null);
    }

    @Override
    public void handlePushNotificationRejected(
        Http2Headers headers, ByteBuf body, RejectionReason reason, Instant since) {
      print(headers, body, reason);
    }

    static synchronized void print(Http2Headers headers, ByteBuf body, RejectionReason reason) {
      String shown = SHOWN.stream()
          .filter(headers::contains)
          .map((name) -> "\"" + name + "\":\"" + headers.get(name) + "\"")
          .collect(Collectors.joining(","));
      String token = headers.path().toString().replaceFirst("^/3/device/", "");
      System.out.printf("{\"token\":\"%s\",\"bytes\":%d,\"headers\":{%s},\"refused\":%s}%n", token,
          body == null ? 0 : body.readableBytes(), shown,
          reason == null ? "null" : "\"" + textOf(reason) + "\"");
    }

    /** `BadTopic` for BAD_TOPIC: what APNs answers. pushy keeps the text to itself. */
    static String textOf(RejectionReason reason) {
      return Arrays.stream(reason.name().split("_"))
          .map((word) -> word.charAt(0) + word.substring(1).toLowerCase())
          .collect(Collectors.joining());
    }
  }
}
