import { defineHttpGateway } from '../../all/definition.ts';

export const definition = defineHttpGateway({
  connector: 'vendor_b',
  // Base64 with characters that a form must escape.
  deviceToken: (hash) => `+/${Buffer.from(hash, 'hex').toString('base64')}`,
  async load() {
    const { createXiaomiApp, startXiaomiGateway } = await import('./server.ts');
    return {
      createApp: createXiaomiApp,
      start: (app, options) => startXiaomiGateway({ ...options, ...app }),
      credentials: (app) => ({ ...app }),
    };
  },
});
