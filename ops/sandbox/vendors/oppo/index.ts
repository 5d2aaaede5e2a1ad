import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_d',
  deviceToken: (hash) => `CN_${hash.slice(0, 32)}`,
  async load() {
    const { createOppoApp, startOppoGateway } = await import('./server.ts');
    return {
      createApp: createOppoApp,
      start: (app, options) => startOppoGateway({ ...options, app }),
      credentials: (app) => ({ ...app }),
    };
  },
});
