import { WebSocket } from 'ws';

/** A client without manners: says what a test tells it to, and keeps what it hears. */
export class RawClient {
  readonly frames: string[] = [];
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  #waiters: (() => void)[] = [];

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('message', (data) => {
      this.frames.push(String(data));
      for (const wake of this.#waiters.splice(0)) wake();
    });
    this.closed = new Promise((resolve) =>
      socket.on('close', (code, reason) => {
        for (const wake of this.#waiters.splice(0)) wake();
        resolve({ code, reason: String(reason) });
      }),
    );
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<RawClient> {
    const socket = new WebSocket(url, { perMessageDeflate: false, headers });
    const client = new RawClient(socket);
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return client;
  }

  /** Opens, logs in, and waits for the answer to the heartbeat behind the login. */
  static async login(
    url: string,
    appId: string,
    installationId: string,
    headers: Record<string, string> = {},
  ): Promise<RawClient> {
    const client = await RawClient.open(url, headers);
    client.say({ cmd: 'login', appId, installationId });
    client.say({});
    await client.hears((frames) => frames.includes('{}'));
    return client;
  }

  say(value: unknown): void {
    this.socket.send(JSON.stringify(value));
  }

  /** Waits until what was heard satisfies `isEnough`. Rejects when the connection ends before. */
  async hears(isEnough: (frames: string[]) => boolean): Promise<void> {
    while (!isEnough(this.frames)) {
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed, heard ${this.frames}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Letter ids of all data frames so far. */
  get letterIds(): string[] {
    return this.frames.flatMap((frame) => JSON.parse(frame).ids ?? []);
  }

  close(): void {
    this.socket.close();
  }
}
