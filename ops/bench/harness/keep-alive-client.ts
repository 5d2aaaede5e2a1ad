import { connect, type Socket } from 'node:net';

/** Body and headers of a call. */
export interface KeepAliveCall {
  path: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST; GET without it. */
  body?: object;
}

/** Reply in its parts. */
interface KeepAliveReply {
  status: number;
  text: string;
}

/** Call that waits for its reply. */
interface PendingCall {
  resolve(reply: KeepAliveReply): void;
  reject(error: Error): void;
}

const endOfHead = Buffer.from('\r\n\r\n');

/** One connection with one call at a time. Reads replies with a `Content-Length`, as the api sends them. */
class KeepAliveConnection {
  readonly #socket: Socket;
  #pending: PendingCall | undefined;
  #read: Buffer = Buffer.alloc(0);
  #isClosed = false;

  constructor(host: string, port: number) {
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the connection closed before the reply')));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  exchange(request: string): Promise<KeepAliveReply> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#read = this.#read.length === 0 ? chunk : Buffer.concat([this.#read, chunk]);
    const headLength = this.#read.indexOf(endOfHead);
    if (headLength < 0) return;
    const head = this.#read.toString('latin1', 0, headLength);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.#fail(new Error('the reply has no Content-Length'));
      return;
    }
    const bodyAt = headLength + endOfHead.length;
    const end = bodyAt + Number(length);
    if (this.#read.length < end) return;
    const text = this.#read.toString('utf8', bodyAt, end);
    this.#read = this.#read.subarray(end);
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.resolve({ status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)), text });
  }

  #fail(error: Error): void {
    this.#isClosed = true;
    this.#socket.destroy();
    this.#pending?.reject(error);
    this.#pending = undefined;
  }
}

/**
 * HTTP/1.1 client over connections that stay open. It costs a quarter of the processor time of `node:http`, which would
 * take as much as the api that a benchmark measures.
 */
export class KeepAliveClient {
  readonly #url: URL;
  readonly #maxConnections: number;
  readonly #all = new Set<KeepAliveConnection>();
  readonly #free: KeepAliveConnection[] = [];
  readonly #waiting: ((connection: KeepAliveConnection) => void)[] = [];

  constructor(url: string, connections: number) {
    this.#url = new URL(url);
    this.#maxConnections = connections;
  }

  /** Sends a call and returns the text of its reply. Throws an error with the text when the call is refused. */
  async send(call: KeepAliveCall): Promise<string> {
    const connection = await this.#connection();
    try {
      const { status, text } = await connection.exchange(this.#requestText(call));
      if (status < 200 || status > 299) throw new Error(`${call.path} answered ${status}: ${text}`);
      return text;
    } finally {
      this.#release(connection);
    }
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }

  #requestText({ path, headers, body }: KeepAliveCall): string {
    const text = body === undefined ? '' : JSON.stringify(body);
    let head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: ${this.#url.host}\r\n`;
    for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
    return `${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  }

  /** Takes a free connection, or opens one, or waits for one. */
  async #connection(): Promise<KeepAliveConnection> {
    for (let free = this.#free.pop(); free; free = this.#free.pop()) {
      if (!free.isClosed) return free;
      this.#all.delete(free);
    }
    if (this.#all.size >= this.#maxConnections)
      return new Promise((resolve) => void this.#waiting.push(resolve));
    return this.#open();
  }

  #open(): KeepAliveConnection {
    const connection = new KeepAliveConnection(this.#url.hostname, Number(this.#url.port));
    this.#all.add(connection);
    return connection;
  }

  #release(connection: KeepAliveConnection): void {
    const next = this.#waiting.shift();
    if (connection.isClosed) this.#all.delete(connection);
    if (next) next(connection.isClosed ? this.#open() : connection);
    else if (!connection.isClosed) this.#free.push(connection);
  }
}
