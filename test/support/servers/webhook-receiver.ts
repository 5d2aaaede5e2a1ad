import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { freePort } from '../../../ops/local/ports.ts';
import type { EventTypeName } from '../../../shared/domain/webhooks/event-types.ts';
import { eventTypes } from '../../../shared/domain/webhooks/event-types.ts';

/** Body of a request as the receiver reads it. */
export interface ReceivedEvent {
  type: string;
  timestamp: string;
  app: string | null;
  data: Record<string, unknown>;
}

export interface ReceivedRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  event: ReceivedEvent;
  atMs: number;
}

/** Writes the response to a request. */
export type Responder = (response: ServerResponse, request: ReceivedRequest) => void;

export interface WebhookReceiver {
  url: string;
  requests: ReceivedRequest[];
  /** Responses to the next requests, in order. */
  responders: Responder[];
  /** Response to all other requests. 204 by default. */
  respond: Responder;
  /** Highest number of requests at the same time. */
  readonly maxOpen: number;
  /** Events of a type. */
  of(type: string): ReceivedRequest[];
  close(): Promise<void>;
}

/** Returns a responder with a status. */
export const status =
  (code: number, headers: Record<string, string> = {}, body = ''): Responder =>
  (response) =>
    void response.writeHead(code, headers).end(body);

/** Starts a receiver of webhooks on loopback, on a free port by default. */
export async function startWebhookReceiver(options?: { port: number }): Promise<WebhookReceiver> {
  const port = options?.port ?? (await freePort());
  const requests: ReceivedRequest[] = [];
  const responders: Responder[] = [];
  let open = 0;
  let maxOpen = 0;
  const server = createServer((request, response) => {
    open += 1;
    maxOpen = Math.max(maxOpen, open);
    response.once('close', () => {
      open -= 1;
    });
    void text(request).then((body) => {
      const event: ReceivedEvent = JSON.parse(body);
      const { url: path = '', headers } = request;
      const received = { path, headers, body, event, atMs: performance.now() };
      requests.push(received);
      (responders.shift() ?? receiver.respond)(response, received);
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${port}/hooks/carillon?tenant=a`,
    requests,
    responders,
    respond: status(204),
    get maxOpen() {
      return maxOpen;
    },
    of: (type) => requests.filter(({ event }) => event.type === type),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

/**
 * Verifies a request with the library of the standard, and returns its body. Also checks the body
 * against the schema of its type.
 */
export function verified(secret: string, { headers, body }: ReceivedRequest): ReceivedEvent {
  const standard: Record<string, string> = {};
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    standard[name] = String(headers[name]);
  const event = new Webhook(secret).verify(body, standard) as ReceivedEvent;
  if (Object.hasOwn(eventTypes, event.type))
    eventTypes[event.type as EventTypeName].data.parse(event.data);
  return event;
}
