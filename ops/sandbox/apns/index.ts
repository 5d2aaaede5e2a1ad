import { defineGateway } from '../all/definition.ts';
import type { ApnsCredentials, ApnsGateway } from './server.ts';

export const definition = defineGateway<ApnsCredentials, ApnsGateway>({
  connector: 'apns',
  deviceToken: (hash) => hash,
  async load() {
    const { createApnsCredentials, startApnsGateway } = await import('./server.ts');
    return {
      createApp: () => createApnsCredentials(),
      start: (key, options) => startApnsGateway({ ...options, keys: [key] }),
      credentials: ({ publicKey: _, ...token }, { ca, url }) => ({
        auth: 'token',
        ...token,
        endpoint: url,
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
      gateway.requests.map(({ body, status, token }) => ({
        path: `/3/device/${token}`,
        status,
        devices: 1,
        body,
      })),
    violations: () => gateway.protocolErrors,
    close: () => gateway.close(),
  }),
});
