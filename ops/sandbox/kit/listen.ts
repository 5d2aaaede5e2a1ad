import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Server } from 'node:tls';
import {
  type CertificateAuthority,
  type KeyPairPem,
  openCertificateAuthority,
} from './certificates.ts';

export interface ListenOptions {
  /** Signs the server's certificate. If absent, a new CA is created. */
  authority?: CertificateAuthority;
  /** Certificate of the server, if it must stay the same after a restart. */
  server?: KeyPairPem;
  /** 127.0.0.1 by default. */
  host?: string;
  /** A free port by default. */
  port?: number;
}

/** Certificate and key of a server, and the certificate of its CA, in PEM. */
export interface Identity {
  cert: string;
  key: string;
  ca: string;
}

/** Server that listens. */
export interface Listening {
  url: string;
  authority: CertificateAuthority;
  /** Closes the server and destroys its connections. */
  close(): Promise<void>;
}

/** Creates a TLS server on loopback. Resolves when it listens. */
export async function listen(
  options: ListenOptions,
  create: (identity: Identity) => Server,
): Promise<Listening> {
  const { host = '127.0.0.1', port = 0 } = options;
  const authority = options.authority ?? (await openCertificateAuthority());
  const { certificate, privateKey } = options.server ?? (await authority.issueServer());
  const server = create({ cert: certificate, key: privateKey, ca: authority.certificate });
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  // If a peer is killed, a socket may remain whose handshake never ends.
  server.on('connection', track);
  server.on('secureConnection', track);
  // The client reports a failed handshake itself.
  server.on('tlsClientError', () => undefined);
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `https://${host}:${bound}`,
    authority,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
