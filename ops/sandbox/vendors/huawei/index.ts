import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_a',
  deviceToken: (hash) => `IQAAAACy${hash}`,
  async load() {
    const { createHuaweiApp, startHuaweiGateway } = await import('./server.ts');
    return {
      createApp: createHuaweiApp,
      start: (app, options) => startHuaweiGateway({ ...options, app }),
      credentials: ({ publicKey: _, ...app }) => ({ ...app }),
    };
  },
});
