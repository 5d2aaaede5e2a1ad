import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { channelPath } from '../../../shared/domain/installations/installation.ts';

/** Text that the answer proves to have read (RFC 6455, section 1.3). */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** The version of RFC 6455, and a draft with the same frames. */
const versions: ReadonlySet<string> = new Set(['13', '8']);
const keyForm = /^[+/0-9A-Za-z]{22}==$/;

/**
 * Tells whether a request offers to change to WebSocket, also among other protocols (RFC 9110,
 * section 7.8).
 */
const offersWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  (headers.upgrade ?? '').split(',').some((name) => name.trim().toLowerCase() === 'websocket');

/**
 * Tells whether a request asks for the device channel. Any other offer of an upgrade is ignored,
 * and the request is answered as if it had none: HTTP clients of Java and `curl --http2` offer
 * `h2c` with every request.
 */
export const isChannelUpgrade = (request: IncomingMessage): boolean =>
  request.url?.split('?')[0] === channelPath && offersWebSocket(request);

/** Returns the sub-protocols that a client offers; a missing header offers the protocol without a name. */
export function offeredProtocols(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/**
 * Returns the answer that accepts an upgrade with a sub-protocol; the empty one stands for none. Accepts no extension.
 * Throws a `Refusal` for a request that is no opening handshake (RFC 6455, section 4.2.1).
 */
export function acceptance(request: IncomingMessage, protocol: string): string {
  const key = request.headers['sec-websocket-key'];
  const isHandshake =
    offersWebSocket(request) && versions.has(request.headers['sec-websocket-version'] ?? '');
  if (!isHandshake || key === undefined || !keyForm.test(key))
    throw new Refusal('invalidParameter', { text: 'The request is no WebSocket handshake of version 13.' });
  const proof = createHash('sha1')
    .update(key + guid)
    .digest('base64');
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${proof}`,
    ...(protocol === '' ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    '\r\n',
  ].join('\r\n');
}
