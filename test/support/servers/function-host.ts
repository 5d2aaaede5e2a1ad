import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HostRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
}

export type HostAnswer = (request: IncomingMessage, response: ServerResponse) => void;

export interface TestFunctionHost {
  url: string;
  requests: HostRequest[];
  /** Replies by path. The default is `{"result":"ok"}`. */
  answers: Map<string, HostAnswer>;
  /** Returns the number of opened connections. */
  connections(): number;
  close(): Promise<void>;
}

/** Returns a handler that replies with JSON after it has read the request. */
export const answerWith =
  (status: number, body: unknown, headers: Record<string, string> = {}): HostAnswer =>
  (request, response) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = () =>
      response
        .writeHead(status, {
          'content-type': 'application/json; charset=UTF-8',
          'content-length': Buffer.byteLength(text),
          ...headers,
        })
        .end(text);
    if (request.readableEnded) answer();
    else request.resume().once('end', answer);
  };

/**
 * Starts an HTTP server on loopback with configurable replies, for tests of faulty and hostile
 * hosts.
 */
export async function startFunctionHost(): Promise<TestFunctionHost> {
  const requests: HostRequest[] = [];
  const answers: TestFunctionHost['answers'] = new Map();
  let connections = 0;
  const server = createServer((request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request;
    requests.push({ method, path: url, headers, rawHeaders });
    const answer = answers.get(url) ?? answerWith(200, { result: 'ok' });
    answer(request, response);
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    answers,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
