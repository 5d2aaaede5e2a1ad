import type { IncomingHttpHeaders } from 'node:http2';
import { defineGateway } from '../all/definition.ts';
import type { ApnsCredentials, ApnsGateway } from './server.ts';

/** Path of a request. Without checks, only the device token is recorded. */
const pathOf = (headers: IncomingHttpHeaders, token: string): string =>
  headers[':path'] ?? `/3/device/${token}`;

export const definition = defineGateway<ApnsCredentials, ApnsGateway>({
  connector: 'apns',
  deviceToken: (hash) => hash,
  async load() {
    const { createApnsCredentials, startApnsGateway } = await import('./server.ts');
    return {
      createApp: () => createApnsCredentials(),
      start: (key, options) => startApnsGateway({ ...options, keys: [key] }),
      credentials: ({ publicKey: _, ...token }, { ca, url, channels }) => ({
        auth: 'token',
        ...token,
        endpoint: url,
        ...(channels.url === '' ? {} : { managementEndpoint: channels.url }),
        ca,
      }),
    };
  },
  control: (gateway) => ({
    seen: (deviceToken) => gateway.seen(deviceToken),
    summary: () => ({
      requests: gateway.total,
      accepted: gateway.accepted,
      devices: gateway.distinct,
      violations: gateway.protocolErrors.length,
    }),
    requests: () =>
      gateway.requests.map(({ body, headers, status, token }) => ({
        path: pathOf(headers, token),
        status,
        devices: 1,
        body,
      })),
    violations: () => gateway.protocolErrors,
    close: () => gateway.close(),
  }),
});
