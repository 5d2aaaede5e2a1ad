/**
 * Sends with the APNs client `@parse/node-apn`. Each call has 1,000 tokens from memory. Nothing is
 * stored.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { providerSettings } from './provider-settings.ts';
import { type RivalOrder, runRival, tokensOf } from './rival-process.ts';

/**
 * Methods of the client's connections that this process uses (README of the client, "Provider").
 */
interface Provider {
  send(notification: object, tokens: string[]): Promise<{ sent: unknown[]; failed: unknown[] }>;
  shutdown(): void;
}

/**
 * Number of tokens of a call, and number of concurrent calls. They are limited because the client
 * opens a stream for each token at once.
 */
const tokensOfCall = 1000;
const callsAtOnce = 2;

let provider: Provider | undefined;
let tokens: string[] = [];

async function push({ url, ca, topic, devices, packages }: RivalOrder): Promise<number> {
  const apn = createRequire(join(packages, 'package.json'))('@parse/node-apn');
  const { hostname, port } = new URL(url);
  if (tokens.length !== devices) tokens = tokensOf(devices);
  const startedAtMs = performance.now();
  const connection: Provider =
    provider ?? new apn.Provider(providerSettings({ hostname, port, ca }));
  provider = connection;
  let next = 0;
  const sendCalls = async () => {
    while (next < tokens.length) {
      const slice = tokens.slice(next, next + tokensOfCall);
      next += tokensOfCall;
      const { failed } = await connection.send(
        new apn.Notification({ alert: 'Benchmark', topic }),
        slice,
      );
      if (failed.length > 0) throw new Error(`${failed.length} notifications failed`);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, sendCalls));
  return (performance.now() - startedAtMs) / 1000;
}

runRival({ name: 'node-apn', push, close: () => provider?.shutdown() });
