import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_e',
  // A long decimal number.
  deviceToken: (hash) =>
    BigInt(`0x1${hash.slice(0, 18)}`)
      .toString()
      .padStart(23, '1'),
  async load() {
    const { createVivoApp, startVivoGateway } = await import('./server.ts');
    return {
      createApp: createVivoApp,
      start: (app, options) => startVivoGateway({ ...options, app }),
      credentials: (app) => ({ ...app }),
    };
  },
});
