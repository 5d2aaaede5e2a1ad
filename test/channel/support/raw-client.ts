import { WebSocket } from 'ws';
import { SocketClient } from './socket-client.ts';

/** JSON client that can send any frame and records what it receives. */
export class RawClient extends SocketClient {
  readonly frames: string[] = [];

  protected onFrame(data: Buffer): void {
    this.frames.push(String(data));
  }

  protected describeReceived(): string {
    return String(this.frames);
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<RawClient> {
    const socket = new WebSocket(url, { perMessageDeflate: false, headers });
    const client = new RawClient(socket);
    await client.opened();
    return client;
  }

  /** Opens a connection, logs in and waits for the reply to the heartbeat after the login. */
  static async login(
    url: string,
    appId: string,
    installationId: string,
    headers: Record<string, string> = {},
  ): Promise<RawClient> {
    const client = await RawClient.open(url, headers);
    client.send({ cmd: 'login', appId, installationId });
    client.send({});
    await client.untilFrames((frames) => frames.includes('{}'));
    return client;
  }

  send(value: unknown): void {
    this.socket.send(JSON.stringify(value));
  }

  /**
   * Resolves when the received frames satisfy `isEnough`. Rejects if the connection closes first.
   */
  untilFrames(isEnough: (frames: string[]) => boolean): Promise<void> {
    return this.until(() => isEnough(this.frames));
  }

  /** Message ids of all data frames so far. */
  get messageIds(): string[] {
    return this.frames.flatMap((frame) => JSON.parse(frame).ids ?? []);
  }
}
