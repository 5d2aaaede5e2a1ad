import { WebSocket } from 'ws';

/** What clients of the channel's tests share: a socket, how it ended, and waiting for what it hears. */
export abstract class SocketClient {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  #waiters: (() => void)[] = [];

  protected constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('message', (data: Buffer, isBinary) => {
      this.keep(data, isBinary);
      this.#wake();
    });
    this.closed = new Promise((resolve) =>
      socket.on('close', (code, reason) => {
        this.#wake();
        resolve({ code, reason: String(reason) });
      }),
    );
  }

  /** Takes in a frame that was heard. */
  protected abstract keep(data: Buffer, isBinary: boolean): void;

  /** What was heard so far, for the message of a failure. */
  protected abstract account(): string;

  /** Resolves when the socket is open; rejects when it cannot be opened. */
  protected async opened(): Promise<void> {
    await new Promise((resolve, reject) => {
      this.socket.once('open', resolve);
      this.socket.once('error', reject);
    });
  }

  /** Waits for what is heard. Rejects when the connection ends before. */
  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed, heard ${this.account()}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  close(): void {
    this.socket.close();
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}
