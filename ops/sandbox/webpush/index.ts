import { newKeyPair } from '../../../connectors/webpush/vapid.ts';
import { defineHttpGateway } from '../all/definition.ts';
import { browserOf, tokenOf } from './browser.ts';

export const definition = defineHttpGateway({
  connector: 'webpush',
  hasTokenCall: false,
  deviceToken: (hash) => tokenOf(browserOf(hash)),
  async load() {
    const { startWebPushGateway } = await import('./server.ts');
    return {
      createApp: newKeyPair,
      start: (_pair, options) => startWebPushGateway(options),
      credentials: (pair) => ({ subject: 'mailto:push@example.com', ...pair }),
    };
  },
});
