import { openWrapperTransport } from './http2-wrapper/transport.ts';
import { openNativeTransport } from './native/transport.ts';
import type { Transport, TransportOptions } from './transport.ts';

/** Member `transport` of a profile: `standard` is http2-wrapper, absent is the native transport. */
export type TransportChoice = 'standard' | undefined;

/**
 * Opens a connection pool to `options.baseUrl` over the chosen transport; connects with the first batch. Throws when
 * the URL or a PEM is invalid, or certificate and key do not match: check credentials before.
 */
export function openTransport(options: TransportOptions, choice: TransportChoice): Transport {
  return choice === 'standard' ? openWrapperTransport(options) : openNativeTransport(options);
}
