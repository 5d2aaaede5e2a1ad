/**
 * Push service for a real Firefox: the WebSocket of the browser, and the HTTPS endpoints of its
 * subscriptions. Stores messages by TTL and topic while the browser is away (RFC 8030).
 */
import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { loopbackIdentity } from '../../support/gateways/identity.ts';

interface Stored {
  version: string;
  channelID: string;
  topic: string | undefined;
  data: string;
}

/** What the browser acknowledged: 100 delivered, 101 not decrypted. */
interface Ack {
  version: string;
  code: number;
}

export class PushService {
  readonly acks: Ack[] = [];
  /** VAPID keys by channel, as the browser registered them. */
  readonly keys = new Map<string, string>();
  /** Channels that the browser or the service ended. */
  readonly ended = new Set<string>();
  #socket: WebSocket | undefined;
  #uaid = '';
  #stored: Stored[] = [];
  #waiting: (() => void)[] = [];
  readonly #http: Server;
  readonly #https: SecureServer;

  private constructor(http: Server, https: SecureServer) {
    this.#http = http;
    this.#https = https;
    new WebSocketServer({ server: http }).on('connection', (socket) => this.#connect(socket));
  }

  static async start(): Promise<PushService> {
    const { server } = await loopbackIdentity();
    const http = createHttpServer();
    const pem = { cert: server.certificate, key: server.privateKey };
    const https = createServer(pem);
    for (const one of [http, https])
      await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
    const service = new PushService(http, https);
    https.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const channelID = request.url?.split('/').at(-1) ?? '';
        const status = service.#receive(channelID, Buffer.concat(chunks), request.headers);
        response.writeHead(status, { location: '/m/1' }).end();
      });
    });
    return service;
  }

  /** `host:port` of the endpoints. */
  get host(): string {
    return `127.0.0.1:${(this.#https.address() as AddressInfo).port}`;
  }

  /** Address for the preference `dom.push.serverURL`. */
  get socketUrl(): string {
    return `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}/`;
  }

  /** Resolves when a browser is connected and has said hello. */
  async untilHello(): Promise<void> {
    if (this.#uaid !== '' && this.#socket) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Forgets the browser, as a push service does with an idle one. It then gets another id. */
  forget(): void {
    this.#uaid = '';
    for (const channel of this.keys.keys()) this.ended.add(channel);
    this.#socket?.close();
  }

  close(): void {
    this.#socket?.terminate();
    this.#http.close();
    this.#https.closeAllConnections();
    this.#https.close();
  }

  #receive(
    channelID: string,
    body: Buffer,
    headers: Record<string, string | string[] | undefined>,
  ): number {
    if (!this.keys.has(channelID)) return 404;
    if (this.ended.has(channelID)) return 410;
    const key = /k=([\w-]+)/.exec(String(headers.authorization))?.[1];
    if (key !== this.keys.get(channelID)?.replace(/=+$/, '')) return 403;
    const topic = typeof headers.topic === 'string' ? headers.topic : undefined;
    const data = body.toString('base64url');
    const message = { version: randomUUID(), channelID, topic, data };
    if (this.#socket) this.#send(message);
    else if (headers.ttl !== '0') {
      this.#stored = this.#stored.filter(
        (one) => topic === undefined || one.topic !== topic || one.channelID !== channelID,
      );
      this.#stored.push(message);
    }
    return 201;
  }

  #send({ channelID, data, version }: Stored): void {
    this.#say({
      messageType: 'notification',
      channelID,
      version,
      ttl: 60,
      data,
      headers: { encoding: 'aes128gcm' },
    });
  }

  #say(message: object): void {
    this.#socket?.send(JSON.stringify(message));
  }

  #connect(socket: WebSocket): void {
    socket.on('message', (data) => this.#onMessage(socket, JSON.parse(String(data))));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
  }

  #onMessage(socket: WebSocket, message: Record<string, unknown>): void {
    const { channelID } = message;
    switch (message.messageType) {
      case 'hello':
        this.#socket = socket;
        this.#uaid ||= randomUUID().replaceAll('-', '');
        this.#say({
          messageType: 'hello',
          status: 200,
          uaid: this.#uaid,
          use_webpush: true,
          broadcasts: {},
        });
        for (const one of this.#stored.splice(0)) this.#send(one);
        for (const resolve of this.#waiting.splice(0)) resolve();
        break;
      case 'register':
        this.keys.set(String(channelID), String(message.key ?? ''));
        this.#say({
          messageType: 'register',
          status: 200,
          channelID,
          pushEndpoint: `https://${this.host}/wpush/v2/${String(channelID)}`,
        });
        break;
      case 'unregister':
        this.ended.add(String(channelID));
        this.#say({ messageType: 'unregister', status: 200, channelID });
        break;
      case 'ack':
        this.acks.push(...(message.updates as Ack[]));
    }
  }
}
