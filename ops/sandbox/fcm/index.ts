import { defineHttpGateway } from '../all/definition.ts';

const definitionOf = (connector: 'fcm' | 'vendor_g', projectId?: string) =>
  defineHttpGateway({
    connector,
    deviceToken: (hash) => `fcm${hash.slice(0, 19)}:APA91b${hash}${hash}`,
    async load() {
      const { createServiceAccount, startFcmGateway } = await import('./server.ts');
      return {
        createApp: () => createServiceAccount(projectId),
        start: (account, options) => startFcmGateway({ ...options, account }),
        credentials: (account) => ({ serviceAccount: { ...account } }),
      };
    },
  });

export const fcm = definitionOf('fcm');

/** FCM under its second connector id, with its own project. */
export const vendorG = definitionOf('vendor_g', 'carillon-sandbox-g');
