/** TLS server of a quick gateway: a process of a benchmark that answers without checks. */
import { createServer, type TLSSocket } from 'node:tls';
import type { KeyPairPem } from '../../sandbox/kit/certificates.ts';

export interface QuickServer {
  url: string;
  close(): Promise<void>;
}

/** Listens on a free loopback port for one protocol; calls `serve` for every connection. */
export async function listenQuick(
  { certificate, privateKey }: KeyPairPem,
  protocol: 'h2' | 'http/1.1',
  serve: (socket: TLSSocket) => void,
): Promise<QuickServer> {
  const sockets = new Set<TLSSocket>();
  const options = { cert: certificate, key: privateKey, ALPNProtocols: [protocol] };
  const server = createServer(options, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    serve(socket);
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    url: `https://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
