import { type KeyPair, newKeyPair } from '../../../connectors/webpush/vapid.ts';
import { defineHttpGateway } from '../all/definition.ts';
import { browserOf, decrypt, tokenOf } from './browser.ts';
import type { WebPushGateway } from './server.ts';

export const definition = defineHttpGateway<KeyPair, WebPushGateway>({
  connector: 'webpush',
  hasTokenCall: false,
  shownBody({ browsers }, { body, path }) {
    const browser = browsers.get(path);
    const opened = browser && decrypt(body, browser);
    return opened?.ok ? opened.text : body;
  },
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
