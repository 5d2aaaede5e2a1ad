import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import {
  connect as connectTls,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls';
import { basicAuthorization } from '../domain/urls.ts';
import { guardedLookup, requireAllowedAddress } from './outbound-addresses.ts';

/** Most bytes read of the response to a CONNECT. */
const maxHeadBytes = 16_384;

interface TunnelTarget {
  host: string;
  port: number;
  signal: AbortSignal;
  /** Trust for an https:// proxy; absent: the system's authorities. */
  secureContext?: SecureContext;
}

/** Error of a proxy that refused the tunnel; `code` contains its status. */
class ProxyError extends Error {
  readonly code: string;

  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.code = `PROXY_${status}`;
  }
}

/**
 * Opens a tunnel through an HTTP proxy by CONNECT (RFC 9110 9.3.6), with the user and password of
 * its URL as Basic authentication. `proxy` is http:// or https://. Rejects with `ProxyError`,
 * `AddressRefused`, the socket's error or the signal's. The proxy resolves the name of the target,
 * so only a target that is an address can be checked here.
 */
export async function openTunnel(
  proxy: URL,
  { host, port, secureContext, signal }: TunnelTarget,
): Promise<Socket> {
  const isSecure = proxy.protocol === 'https:';
  const proxyHost = proxy.hostname.replace(/^\[|\]$/g, '');
  const proxyPort = Number(proxy.port || (isSecure ? 443 : 80));
  requireAllowedAddress(proxy.hostname);
  requireAllowedAddress(host);
  const socket = isSecure
    ? connectTls({
        host: proxyHost,
        port: proxyPort,
        secureContext,
        // Server names are host names only (RFC 6066).
        servername: isIP(proxyHost) ? '' : proxyHost,
        ALPNProtocols: ['http/1.1'],
        lookup: guardedLookup,
      })
    : connectTcp({ host: proxyHost, port: proxyPort, lookup: guardedLookup });
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal });
    const authorization = basicAuthorization(proxy);
    const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    socket.write(
      `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${
        authorization === undefined ? '' : `Proxy-Authorization: ${authorization}\r\n`
      }Proxy-Connection: keep-alive\r\n\r\n`,
    );
    const status = await statusOf(socket, signal);
    if (status < 200 || status > 299) throw new ProxyError(status);
    return socket;
  } catch (error) {
    socket.on('error', () => undefined);
    socket.destroy();
    throw error;
  }
}

/** Reads the head of the response; returns 0 when more bytes follow: the client speaks first in the tunnel. */
async function statusOf(socket: Socket, signal: AbortSignal): Promise<number> {
  let head = Buffer.alloc(0);
  const closed = once(socket, 'close', { signal }).then((): never => {
    throw new ProxyError(0);
  });
  closed.catch(() => undefined);
  for (;;) {
    const end = head.indexOf('\r\n\r\n');
    if (end >= 0) {
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1', 0, 64))?.[1] ?? 0);
      const rest = head.subarray(end + 4);
      // Informational responses come first (RFC 9110 15.2).
      if (status < 100 || status > 199) return rest.length === 0 ? status : 0;
      head = rest;
    } else if (head.length > maxHeadBytes) return 0;
    else head = Buffer.concat([head, await nextChunk(socket, closed, signal)]);
  }
}

async function nextChunk(socket: Socket, closed: Promise<never>, signal: AbortSignal): Promise<Buffer> {
  for (;;) {
    const chunk: Buffer | null = socket.read();
    if (chunk !== null) return chunk;
    await Promise.race([once(socket, 'readable', { signal }), closed]);
  }
}

/** Secure contexts by PEM, weakly held: an unused one is collected. */
const contexts = new Map<string, WeakRef<SecureContext>>();

/**
 * Creates the secure context of a client that trusts the system's authorities and an additional one (PEM, optional;
 * protocol/admin-api.md#credentials-of-a-push-profile). Adds to the list that the process has parsed: the option `ca` would
 * replace it, and parsing all of the list again takes 10 to 15 ms and a megabyte. Throws for an invalid PEM.
 */
export function secureContextTrusting(
  ca: string | undefined,
  options: Pick<SecureContextOptions, 'cert' | 'key'> = {},
): SecureContext {
  const context = createSecureContext({ ...options, minVersion: 'TLSv1.2' });
  if (ca !== undefined) context.context.addCACert(ca);
  return context;
}

/**
 * Returns the secure context of clients that trust an additional authority (PEM) and have no client certificate; clients with
 * the same authority share it. Throws for an invalid PEM.
 */
export function sharedSecureContext(ca: string): SecureContext {
  const found = contexts.get(ca)?.deref();
  if (found) return found;
  for (const [other, reference] of contexts) if (!reference.deref()) contexts.delete(other);
  const context = secureContextTrusting(ca);
  contexts.set(ca, new WeakRef(context));
  return context;
}
