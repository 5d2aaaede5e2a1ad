import { createServer } from 'node:net';

/** Fatal alerts of TLS (RFC 8446 6.2). */
export const alerts = {
  badCertificate: 42,
  certificateRevoked: 44,
  certificateExpired: 45,
  unknownCa: 48,
};

export interface RefusingPeer {
  /** Base URL, for a profile's `endpoint`. */
  url: string;
  /** Number of refused handshakes. */
  readonly refused: number;
  close(): Promise<void>;
}

/** Starts a server that ends every TLS handshake with a fatal alert. */
export async function startRefusingPeer(alert: number): Promise<RefusingPeer> {
  let refused = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      refused += 1;
      // A record of type alert, TLS 1.2, two bytes: level fatal, and description.
      socket.end(Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, alert]));
    });
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    url: `https://127.0.0.1:${port}`,
    get refused() {
      return refused;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
