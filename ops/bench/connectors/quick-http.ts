/** HTTP/1.1 server of minimal cost: TLS, the length of each body, and a reply without checks. */
import type { TLSSocket } from 'node:tls';
import type { KeyPairPem } from '../../sandbox/kit/certificates.ts';
import { listenQuick, type QuickServer } from '../http2/quick-server.ts';
import type { QuickReply } from './quick-replies.ts';

export interface QuickHttpOptions {
  certificate: KeyPairPem;
  /** Returns the reply of a path; undefined where the path has none. */
  replyOf(path: string): QuickReply | undefined;
  /** A request was answered. */
  onRequest(path: string): void;
}

const endOfHead = Buffer.from('\r\n\r\n');

/** Listens on a free loopback port. */
export function startQuickHttp(options: QuickHttpOptions): Promise<QuickServer> {
  return listenQuick(options.certificate, 'http/1.1', (socket) => {
    const session = new QuickHttpSession(socket, options);
    socket.on('data', (chunk: Buffer) => session.receive(chunk));
  });
}

class QuickHttpSession {
  readonly #socket: TLSSocket;
  readonly #options: QuickHttpOptions;
  /** Head of a request that is not complete yet. */
  #head: Buffer = Buffer.alloc(0);
  #path = '';
  #reply: QuickReply | undefined;
  /** Bytes of the body to come. */
  #left = 0;
  /** Body of a request whose reply depends on it. */
  #body: Buffer[] = [];

  constructor(socket: TLSSocket, options: QuickHttpOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  receive(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left === 0) rest = this.#readHead(rest);
      const piece = rest.subarray(0, this.#left);
      if (this.#reply?.needsBody) this.#body.push(piece);
      this.#left -= piece.length;
      rest = rest.subarray(piece.length);
      if (this.#path !== '' && this.#left === 0) this.#answer();
    }
  }

  /** Returns the bytes after the head; none while it is incomplete. */
  #readHead(chunk: Buffer): Buffer {
    const bytes = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    const end = bytes.indexOf(endOfHead);
    this.#head = end < 0 ? bytes : Buffer.alloc(0);
    if (end < 0) return Buffer.alloc(0);
    const text = bytes.toString('latin1', 0, end);
    this.#path = text.slice(text.indexOf(' ') + 1, text.indexOf(' HTTP/'));
    this.#left = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    this.#reply = this.#options.replyOf(this.#path);
    return bytes.subarray(end + endOfHead.length);
  }

  #answer(): void {
    const body = Buffer.from(this.#reply?.bodyFor(this.#body) ?? '');
    const head = [
      `HTTP/1.1 ${this.#reply ? '200 OK' : '404 Not Found'}`,
      'Server: nginx',
      'Date: Mon, 01 Jan 2024 00:00:00 GMT',
      'Content-Type: application/json;charset=UTF-8',
      'Connection: keep-alive',
      `Content-Length: ${body.length}`,
    ];
    this.#options.onRequest(this.#path);
    this.#socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
    this.#path = '';
    this.#body = [];
  }
}
