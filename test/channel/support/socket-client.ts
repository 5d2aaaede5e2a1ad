import { WebSocket } from 'ws';

/** Base of the test clients: a socket, its close event, and waiting for frames. */
export abstract class SocketClient {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  #waiters: (() => void)[] = [];

  protected constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('message', (data: Buffer, isBinary) => {
      this.onFrame(data, isBinary);
      this.#wake();
    });
    this.closed = new Promise((resolve) =>
      socket.on('close', (code, reason) => {
        this.#wake();
        resolve({ code, reason: String(reason) });
      }),
    );
  }

  /** Records a received frame. */
  protected abstract onFrame(data: Buffer, isBinary: boolean): void;

  /** Describes the received frames for error messages. */
  protected abstract describeReceived(): string;

  /** Resolves when the socket is open. Rejects if opening fails. */
  protected async opened(): Promise<void> {
    await new Promise((resolve, reject) => {
      this.socket.once('open', resolve);
      this.socket.once('error', reject);
    });
  }

  /** Resolves when `isEnough` returns true. Rejects if the connection closes first. */
  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      if (this.socket.readyState === WebSocket.CLOSED)
        throw new Error(`closed, received ${this.describeReceived()}`);
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
