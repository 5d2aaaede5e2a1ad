import type { IncomingHttpHeaders } from 'node:http2';

/** Returns the id of the key that signed a request to APNs. */
export function keyIdOf({ authorization }: IncomingHttpHeaders): string {
  const [head = ''] = String(authorization)
    .replace(/^bearer /, '')
    .split('.');
  return JSON.parse(Buffer.from(head, 'base64url').toString('utf8')).kid;
}
