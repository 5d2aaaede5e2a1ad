import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** Request with arbitrary bytes, as a hostile client may send it. */
export class RawRequest {
  readonly socket: Socket;
  /** Everything that was received until the server closed or reset the connection. */
  readonly reply: Promise<string>;

  constructor(url: string, head: string[]) {
    this.socket = connect(Number(new URL(url).port), '127.0.0.1');
    this.reply = new Promise((resolve) => {
      let received = '';
      this.socket.on('data', (chunk) => {
        received += chunk;
      });
      this.socket.once('error', () => resolve(received)).once('close', () => resolve(received));
    });
    this.socket.write(`${head.join('\r\n')}\r\n\r\n`);
  }

  /** Sends a chunk of a chunked body. */
  chunk(data: string | Buffer): this {
    this.socket.write(`${Buffer.byteLength(data).toString(16)}\r\n`);
    this.socket.write(data);
    this.socket.write('\r\n');
    return this;
  }

  /** Returns the first reply when its body is complete. */
  answer(): Promise<{ status: number; headers: string; body: { code?: number; error?: string } }> {
    return new Promise((resolve, reject) => {
      let received = '';
      const check = (chunk: Buffer) => {
        received += chunk;
        const [headers = '', body = ''] = received.split('\r\n\r\n');
        const length = Number(/content-length: (\d+)/i.exec(headers)?.[1]);
        if (!(Buffer.byteLength(body) >= length)) return;
        this.socket.off('data', check);
        resolve({ status: Number(received.slice(9, 12)), headers, body: JSON.parse(body) });
      };
      this.socket.on('data', check);
      this.socket.once('close', () =>
        reject(new Error(`closed after ${JSON.stringify(received)}`)),
      );
      this.socket.once('error', reject);
    });
  }

  end(): void {
    this.socket.destroy();
  }
}

/** Returns the value of a metric without labels. */
export async function metricOf(url: string, name: string): Promise<number> {
  const response = await fetch(`${url}/metrics`);
  const { body } = response;
  const lines = body ? await text(body) : '';
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(lines)?.[1]);
}
