import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_c',
  deviceToken: (hash) => `RA5${hash.slice(0, 44)}`,
  async load() {
    const { createMeizuApp, startMeizuGateway } = await import('./server.ts');
    return {
      createApp: createMeizuApp,
      start: (app, options) => startMeizuGateway({ ...options, ...app }),
      credentials: (app) => ({ ...app }),
    };
  },
});
