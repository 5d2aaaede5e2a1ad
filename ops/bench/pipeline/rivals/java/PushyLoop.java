import com.eatthepath.pushy.apns.ApnsClient;
import com.eatthepath.pushy.apns.ApnsClientBuilder;
import com.eatthepath.pushy.apns.auth.ApnsSigningKey;
import com.eatthepath.pushy.apns.util.SimpleApnsPushNotification;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.interfaces.ECPrivateKey;
import java.security.spec.ECGenParameterSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A loop over the APNs client pushy: tokens in memory; nothing is stored and nothing is sent again.
 * Reads a number of devices from each line of standard input, pushes to them, and answers with the
 * seconds.
 */
public class PushyLoop {
  /** Notifications that wait for an answer at a time; the client queues what has no stream. */
  private static final int PENDING = 10_000;
  private static final String PAYLOAD = "{\"aps\":{\"alert\":\"Benchmark\"}}";

  /** Token of a device, as the gateway of the benchmark counts it (gateway/gateway.ts). */
  private static String tokenOf(int number) throws Exception {
    byte[] digest = MessageDigest.getInstance("SHA-256")
        .digest(String.valueOf(number).getBytes(StandardCharsets.UTF_8));
    StringBuilder token = new StringBuilder();
    for (int i = 0; i < 28; i++) token.append(String.format("%02x", digest[i]));
    return token.append(String.format("%08x", number)).toString();
  }

  private static String push(ApnsClient client, String topic, List<String> tokens) throws Exception {
    Semaphore places = new Semaphore(PENDING);
    AtomicReference<String> failed = new AtomicReference<>();
    for (String token : tokens) {
      places.acquire();
      client.sendNotification(new SimpleApnsPushNotification(token, topic, PAYLOAD))
          .whenComplete((answer, error) -> {
            if (error != null) failed.set(error.toString());
            else if (!answer.isAccepted()) failed.set(answer.getRejectionReason().orElse("rejected"));
            places.release();
          });
    }
    places.acquire(PENDING);
    return failed.get();
  }

  public static void main(String[] args) throws Exception {
    URI url = URI.create(args[0]);
    String topic = args[2];
    KeyPairGenerator keys = KeyPairGenerator.getInstance("EC");
    keys.initialize(new ECGenParameterSpec("secp256r1"));
    ECPrivateKey key = (ECPrivateKey) keys.generateKeyPair().getPrivate();
    ApnsClient client = new ApnsClientBuilder()
        .setApnsServer(url.getHost(), url.getPort())
        .setTrustedServerCertificateChain(new File(args[1]))
        .setSigningKey(new ApnsSigningKey("ABCDEFGHIJ", "KLMNOPQRST", key))
        .build();
    System.out.println("{\"ready\":true}");
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    List<String> tokens = new ArrayList<>();
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      int devices = Integer.parseInt(line);
      while (tokens.size() < devices) tokens.add(tokenOf(tokens.size() + 1));
      long startedAt = System.nanoTime();
      String failed = push(client, topic, tokens.subList(0, devices));
      double seconds = (System.nanoTime() - startedAt) / 1e9;
      System.out.println(failed == null
          ? "{\"seconds\":" + seconds + "}"
          : "{\"error\":\"" + failed.replaceAll("[\"\\\\]", " ") + "\"}");
    }
    client.close().get();
  }
}
