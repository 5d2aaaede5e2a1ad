import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';

export interface WebhookRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface SmsWebhook {
  url: string;
  requests: WebhookRequest[];
  /** Replies to the next requests, in order. Later requests get 200. */
  answers: { status: number; headers?: Record<string, string> }[];
  close(): Promise<void>;
}

/** Starts an HTTP server on loopback that accepts messages. */
export async function startSmsWebhook(): Promise<SmsWebhook> {
  const requests: WebhookRequest[] = [];
  const answers: SmsWebhook['answers'] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      const { status, headers } = answers.shift() ?? { status: 200 };
      response.writeHead(status, headers).end('{"ignored":true}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/hook?tenant=a`,
    requests,
    answers,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
