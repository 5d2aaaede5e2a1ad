import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import { basicAuthorization } from '../domain/addresses.ts';
import { guardedLookup, requireAllowedAddress } from './outbound-addresses.ts';

/** Maximum size of the proxy's response to CONNECT. */
const maxHeadBytes = 16_384;

export interface TunnelTarget {
  host: string;
  port: number;
  signal: AbortSignal;
  /** Secure context for an https:// proxy. If absent, the system's authorities are trusted. */
  secureContext?: SecureContext;
}

/** The proxy refused the tunnel. `code` contains its status. */
export class ProxyError extends Error {
  readonly code: string;

  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.code = `PROXY_${status}`;
  }
}

/**
 * Opens a tunnel through an HTTP proxy by CONNECT (RFC 9110 9.3.6). Sends user and password of the
 * proxy's URL as Basic authentication. `proxy` is an http:// or https:// URL. Rejects with
 * `ProxyError`, `AddressRefused`, or the error of the socket or the signal. The target can only be
 * checked if it is an address, because the proxy resolves names.
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
        // A server name must be a host name (RFC 6066).
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

/**
 * Reads the head of the proxy's response and returns its status. Returns 0 if more bytes follow,
 * because in the tunnel the client speaks first.
 */
async function statusOf(socket: Socket, signal: AbortSignal): Promise<number> {
  let head = Buffer.alloc(0);
  const closed = once(socket, 'close', { signal }).then((): never => {
    throw new ProxyError(0);
  });
  closed.catch(() => undefined);
  for (;;) {
    const end = head.indexOf('\r\n\r\n');
    if (end >= 0) {
      const status = Number(
        /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1', 0, 64))?.[1] ?? 0,
      );
      const rest = head.subarray(end + 4);
      // Informational responses may come first (RFC 9110 15.2).
      if (status < 100 || status > 199) return rest.length === 0 ? status : 0;
      head = rest;
    } else if (head.length > maxHeadBytes) return 0;
    else head = Buffer.concat([head, await nextChunk(socket, closed, signal)]);
  }
}

async function nextChunk(
  socket: Socket,
  closed: Promise<never>,
  signal: AbortSignal,
): Promise<Buffer> {
  for (;;) {
    const chunk: Buffer | null = socket.read();
    if (chunk !== null) return chunk;
    await Promise.race([once(socket, 'readable', { signal }), closed]);
  }
}
