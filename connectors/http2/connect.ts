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
  /** Timeout for TCP and TLS together. */
  connectMs: number;
  /** HTTP proxy; its URL may contain user and password. Absent for direct connections. */
  proxy?: { url: URL; secureContext: SecureContext };
}

/** Returns what a transport connects to. Expects checked options. */
export function targetOf(options: TransportOptions): ConnectTarget {
  const { baseUrl, ca, proxy, timing } = options;
  return {
    url: new URL(baseUrl),
    secureContext: secureContextOf(options),
    connectMs: timing.connectMs,
    // The client certificate is only for the gateway, so the proxy does not get it.
    ...(proxy === undefined
      ? {}
      : { proxy: { url: new URL(proxy), secureContext: secureContextOf({ ca }) } }),
  };
}

/** The peer did not negotiate HTTP/2. */
class NoHttp2Error extends Error {
  readonly code = 'NO_HTTP2';
}

/**
 * Opens a TLS connection and negotiates HTTP/2 by ALPN (RFC 9113 3.2). Resolves the name for each
 * connection and tries its addresses in random order, which spreads connections over the addresses
 * (protocol/apns.md#connections). Rejects with the error of the socket, the proxy or `signal`, or
 * with `AddressRefused`.
 */
export async function connectTls(target: ConnectTarget, signal: AbortSignal): Promise<TLSSocket> {
  const { url, secureContext, proxy, connectMs } = target;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || 443);
  if (!proxy) requireAllowedAddress(url.hostname);
  const tunnel: Socket | undefined =
    proxy &&
    (await openTunnel(proxy.url, { host, port, signal, secureContext: proxy.secureContext }));
  // `tls.connect` passes these options to `net.connect`. Its type does not declare all of them.
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
    // Without a listener, a late error of the destroyed socket would be an uncaught error.
    socket.on('error', () => undefined);
    socket.destroy();
    throw error;
  }
  socket.setNoDelay(true);
  return socket;
}

/** Resolves a name to its addresses in random order. `autoSelectFamily` requests all of them. */
const shuffledLookup: LookupFunction = (hostname, options, callback) => {
  guardedLookup(hostname, options, (error, addresses, family) => {
    if (error || typeof addresses === 'string') callback(error, addresses, family);
    else callback(null, shuffle(addresses));
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

/**
 * Creates the secure context of a transport. Transports with the same `ca` and no certificate share
 * it.
 */
function secureContextOf({
  ca,
  certificate,
  privateKey,
}: Pick<TransportOptions, 'ca' | 'certificate' | 'privateKey'>): SecureContext {
  const isAnonymous = certificate === undefined && privateKey === undefined;
  if (isAnonymous && ca !== undefined) return sharedSecureContext(ca);
  return secureContextTrusting(ca, { cert: certificate, key: privateKey });
}

/**
 * Returns the server name for SNI. Returns an empty string for an IP address, because RFC 6066
 * allows only names.
 */
export function serverNameOf(hostname: string): string {
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? '' : hostname;
}

/** TLS alerts with which a peer refuses the client certificate. */
const refusals =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_|UNKNOWN_CA|ACCESS_DENIED|NO_CERTIFICATE)/;

export const isCertificateRefusal = (code: string): boolean =>
  refusals.test(code.replace(/ /g, '_').toUpperCase());

/** Returns the code of an error, or its name. Both are short and contain no address. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
