import { openWrapperTransport } from './http2-wrapper/transport.ts';
import { openNativeTransport } from './native/transport.ts';
import type { Transport, TransportOptions } from './transport.ts';

/** What a profile may say of its transport: `standard`, or nothing for our own. */
export type TransportChoice = 'standard' | undefined;

/**
 * Opens a pool to `options.baseUrl` over the transport that a profile chooses; connects when the first batch
 * comes. Throws when the URL, the PEMs or their match are wrong: check credentials before.
 */
export function openTransport(options: TransportOptions, choice: TransportChoice): Transport {
  return choice === 'standard' ? openWrapperTransport(options) : openNativeTransport(options);
}
