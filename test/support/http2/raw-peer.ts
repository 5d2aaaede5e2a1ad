import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import {
  flag,
  frame,
  frameOf,
  readUint24,
  readUint31,
  settingsFrame,
} from '../../../connectors/http2/frames/wire-format.ts';
import { HeaderEncoder } from '../../../connectors/http2/hpack/encoder.ts';
import { loopbackIdentity } from '../gateways/identity.ts';
import { type Opened, portOf, transportOfTest } from './peer.ts';

export interface SeenFrame {
  type: number;
  flags: number;
  id: number;
  payload: Buffer;
}

/** Connection of a peer on which a test can send arbitrary bytes. */
export class RawConnection {
  readonly socket: TLSSocket;
  readonly frames: SeenFrame[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #skip = 24;
  #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('close', () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  write(...pieces: Uint8Array[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(pieces));
  }

  /** Returns the next matching frame, or undefined if the connection ends first. */
  async next(fits: (frame: SeenFrame) => boolean): Promise<SeenFrame | undefined> {
    for (;;) {
      const at = this.frames.findIndex(fits);
      if (at >= 0) return this.frames.splice(at, 1)[0];
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Returns the stream number of the next request. */
  async request(): Promise<number> {
    return (await this.next(({ type }) => type === frame.headers))?.id ?? 0;
  }

  /** Returns the code of the client's GOAWAY, or -1 if there is none. */
  async goaway(): Promise<number> {
    const goaway = await this.next(({ type }) => type === frame.goaway);
    return goaway?.payload.readUInt32BE(4) ?? -1;
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk]);
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    bytes = bytes.subarray(skipped);
    while (bytes.length >= 9 && bytes.length >= 9 + readUint24(bytes, 0)) {
      const end = 9 + readUint24(bytes, 0);
      const payload = bytes.subarray(9, end);
      this.frames.push({
        type: bytes[3] ?? 0,
        flags: bytes[4] ?? 0,
        id: readUint31(bytes, 5),
        payload,
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export interface RawPeer {
  url: string;
  ca: string;
  connections: RawConnection[];
  close(): Promise<void>;
}

/** Starts a TLS server on loopback that negotiates HTTP/2 and leaves the rest to `serve`. */
export async function startRawPeer(
  serve: (connection: RawConnection, index: number) => void,
): Promise<RawPeer> {
  const { authority, server: own } = await loopbackIdentity();
  const connections: RawConnection[] = [];
  const server = createServer(
    { cert: own.certificate, key: own.privateKey, ALPNProtocols: ['h2'] },
    (socket) => {
      const connection = new RawConnection(socket);
      connections.push(connection);
      serve(connection, connections.length - 1);
    },
  );
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${portOf(server)}`,
    ca: authority.certificate,
    connections,
    close: async () => {
      for (const { socket } of connections) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Encodes a header block that does not change the dynamic table. */
export const block = (...fields: [name: string, value: string][]): Buffer =>
  new HeaderEncoder().encode(fields.map(([name, value]) => ({ name, value, scope: 'request' })));

/** Encodes HEADERS with END_HEADERS, and END_STREAM unless `isEnd` is false. */
export const headersFrame = (id: number, fields: Buffer, isEnd = true): Buffer =>
  frameOf(frame.headers, flag.endHeaders | (isEnd ? flag.endStream : 0), id, fields);

export const okFrame = (id: number): Buffer => headersFrame(id, block([':status', '200']));

export const dataFrame = (id: number, text: string | Buffer, isEnd = true): Buffer =>
  frameOf(frame.data, isEnd ? flag.endStream : 0, id, Buffer.from(text));

/** Behaves correctly on a connection: sends SETTINGS and answers every request with 200. */
export async function behave(connection: RawConnection): Promise<void> {
  connection.write(settingsFrame([]));
  for (let id = await connection.request(); id > 0; id = await connection.request())
    connection.write(okFrame(id));
}

/**
 * Opens a transport to a peer that uses `serve` for the first connection. Later connections behave
 * correctly. Both close at the end of the test.
 */
export async function againstRawPeer(
  serve: (connection: RawConnection) => unknown,
  timing: Parameters<typeof transportOfTest>[2] = {},
): Promise<Opened & { peer: RawPeer }> {
  const peer = await startRawPeer(
    (connection, index) => void (index === 0 ? serve(connection) : behave(connection)),
  );
  onTestFinished(() => peer.close());
  const opened = transportOfTest(peer, { maxConnections: 1 }, timing);
  return { ...opened, peer };
}
