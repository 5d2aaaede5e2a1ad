import { WebSocket } from 'ws';
import { SocketClient } from './socket-client.ts';

/** A client without manners: says what a test tells it to, and keeps what it hears. */
export class RawClient extends SocketClient {
  readonly frames: string[] = [];

  protected keep(data: Buffer): void {
    this.frames.push(String(data));
  }

  protected account(): string {
    return String(this.frames);
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<RawClient> {
    const socket = new WebSocket(url, { perMessageDeflate: false, headers });
    const client = new RawClient(socket);
    await client.opened();
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
  hears(isEnough: (frames: string[]) => boolean): Promise<void> {
    return this.until(() => isEnough(this.frames));
  }

  /** Letter ids of all data frames so far. */
  get letterIds(): string[] {
    return this.frames.flatMap((frame) => JSON.parse(frame).ids ?? []);
  }
}
