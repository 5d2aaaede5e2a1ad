import { once } from 'node:events';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import {
  addressAttemptMs,
  guardedLookup,
  requireAllowedAddress,
} from '../../shared/http/outbound-addresses.ts';
import { secureContextTrusting, sharedSecureContext } from '../../shared/http/trust.ts';
import { openTunnel } from '../../shared/http/tunnel.ts';
import type { TransportOptions } from './transport.ts';

export interface ConnectTarget {
  url: URL;
  secureContext: SecureContext;
  /** TCP and TLS. */
  connectMs: number;
  /** HTTP proxy, with user and password in its URL; absent: direct connection. */
  proxy?: { url: URL; secureContext: SecureContext };
}

/** Returns the target of a transport's connections. Expects checked options. */
export function targetOf(options: TransportOptions): ConnectTarget {
  const { baseUrl, ca, proxy, timing } = options;
  return {
    url: new URL(baseUrl),
    secureContext: secureContextOf(options),
    connectMs: timing.connectMs,
    // The client certificate is for the gateway only, not for the proxy.
    ...(proxy === undefined
      ? {}
      : { proxy: { url: new URL(proxy), secureContext: secureContextOf({ ca }) } }),
  };
}

/** Error of a peer that did not agree on HTTP/2. */
export class NoHttp2Error extends Error {
  readonly code = 'NO_HTTP2';
}

/**
 * Opens a TLS connection with HTTP/2 negotiated by ALPN (RFC 9113 3.2). Resolves the name for every
 * connection and tries its addresses in random order, to spread connections over them
 * (protocol/apns.md#connections). Rejects with the error of the socket, the proxy or `signal`, or
 * `AddressRefused`.
 */
export async function connectTls(target: ConnectTarget, signal: AbortSignal): Promise<TLSSocket> {
  const { url, secureContext, proxy, connectMs } = target;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || 443);
  if (!proxy) requireAllowedAddress(url.hostname);
  const tunnel: Socket | undefined =
    proxy &&
    (await openTunnel(proxy.url, { host, port, signal, secureContext: proxy.secureContext }));
  // `tls.connect` hands these on to `net.connect`; its type does not name all of them.
  const options = {
    host,
    port,
    socket: tunnel,
    secureContext,
    servername: serverNameOf(url.hostname),
    ALPNProtocols: ['h2'],
    lookup: shuffledLookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs(connectMs),
  };
  const socket = connect(options);
  try {
    await once(socket, 'secureConnect', { signal });
    if (socket.alpnProtocol !== 'h2') throw new NoHttp2Error('the peer does not speak HTTP/2');
  } catch (error) {
    // Without a listener a late error of the destroyed socket would be uncaught.
    socket.on('error', () => undefined);
    socket.destroy();
    throw error;
  }
  socket.setNoDelay(true);
  return socket;
}

/**
 * Resolves a name to its addresses in random order. Node asks for one or for all (`options.all`).
 */
export const shuffledLookup: LookupFunction = (hostname, options, callback) => {
  guardedLookup(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = error || typeof addresses === 'string' ? [] : addresses;
    if (typeof addresses === 'string' || first === undefined)
      callback(error ?? new Error('no address'), '', 4);
    else if (options.all) callback(null, shuffle(addresses));
    else {
      const { address, family } = shuffle(addresses)[0] ?? first;
      callback(null, address, family);
    }
  });
};

function shuffle<T>(items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    const [a, b] = [items[i], items[j]];
    if (a !== undefined && b !== undefined) {
      items[i] = b;
      items[j] = a;
    }
  }
  return items;
}

/** Creates the secure context of a pool. Pools with the same `ca` and no certificate share one. */
export function secureContextOf({
  ca,
  certificate,
  privateKey,
}: Pick<TransportOptions, 'ca' | 'certificate' | 'privateKey'>): SecureContext {
  const isAnonymous = certificate === undefined && privateKey === undefined;
  if (isAnonymous && ca !== undefined) return sharedSecureContext(ca);
  return secureContextTrusting(ca, { cert: certificate, key: privateKey });
}

/** Returns the server name for SNI; empty for an IP address (RFC 6066 allows names only). */
export function serverNameOf(hostname: string): string {
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? '' : hostname;
}

/** TLS alerts by which a peer rejects the client certificate. */
const refusals =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_|UNKNOWN_CA|ACCESS_DENIED|NO_CERTIFICATE)/;

export const isCertificateRefusal = (code: string): boolean =>
  refusals.test(code.replace(/ /g, '_').toUpperCase());

/** Returns the code of an error, or its name: short, bounded, without addresses. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
