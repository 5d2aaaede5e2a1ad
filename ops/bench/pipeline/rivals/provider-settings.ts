import { generateKeyPairSync } from 'node:crypto';

/**
 * Time limit of a request. The client's default of 5 s ends requests that wait in its queue on a
 * busy machine.
 */
const requestTimeoutMs = 60_000;

/**
 * Returns the settings for a connection of `@parse/node-apn` to the gateway. The key is new,
 * because a quick gateway does not check keys.
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
