import { generateKeyPairSync } from 'node:crypto';

/**
 * Time limit of a request; the client's own, 5 s, ends requests that wait in its queue on a busy
 * machine.
 */
const requestTimeoutMs = 60_000;

/**
 * Returns the settings of a connection of `@parse/node-apn` to the gateway, with a new key, which
 * the quick gateway does not check.
 */
export function providerSettings(gateway: { hostname: string; port: string; ca: string }): object {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    token: {
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      keyId: 'ABCDEFGHIJ',
      teamId: 'KLMNOPQRST',
    },
    address: gateway.hostname,
    port: gateway.port,
    ca: gateway.ca,
    requestTimeout: requestTimeoutMs,
  };
}
