import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_f',
  deviceToken: (hash) => `BAEBQ${hash.slice(0, 40)}`,
  async load() {
    const { createHonorApp, startHonorGateway } = await import('./server.ts');
    return {
      createApp: createHonorApp,
      start: (app, options) => startHonorGateway({ ...options, app }),
      credentials: (app) => ({ ...app }),
    };
  },
});
