import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { text } from 'node:stream/consumers';

/** A request of a client of the SMS sandbox. */
export interface SmsCall {
  method: string;
  /** Path as sent, without the query. */
  path: string;
  /** Query as sent, without `?`. */
  query: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Reply of a provider. `body` is sent as JSON. */
export interface SmsReply {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

/** An SMS that the provider accepted. */
export interface SentSms {
  /** Id that the provider gave the message. */
  id: string;
  /** Number in the provider's form. */
  to: string;
  sign?: string;
  template?: string;
  /** Values of the template, or the text. */
  content: string;
  /** Address for the receipt, and the sender's own id. */
  callback?: string;
  outId?: string;
}

/** A template that the provider has reviewed. `parameters` are names, or a number of them. */
export interface ReviewedTemplate {
  parameters: readonly string[] | number;
}

/**
 * A provider of SMS on loopback. It checks requests as the original does and sends nothing. The
 * checks do not use the code of the connectors.
 */
export class SmsSandbox {
  readonly sent: SentSms[] = [];
  readonly calls: SmsCall[] = [];
  /** Replies to the next requests instead of the provider's own, in order. */
  readonly answers: SmsReply[] = [];
  readonly #handle: (call: SmsCall, sandbox: SmsSandbox) => SmsReply;
  #server: Server | undefined;

  constructor(handle: (call: SmsCall, sandbox: SmsSandbox) => SmsReply) {
    this.#handle = handle;
  }

  /** Starts the provider. Resolves when it listens. */
  async open(port = 0): Promise<this> {
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        const [path = '', query = ''] = (request.url ?? '').split('?');
        const { method = '', headers } = request;
        const call = { method, path, query, headers, body };
        this.calls.push(call);
        const reply = this.answers.shift() ?? this.#handle(call, this);
        response.writeHead(reply.status, {
          'content-type': 'application/json; charset=utf-8',
          ...reply.headers,
        });
        response.end(JSON.stringify(reply.body));
      });
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    return this;
  }

  /** Base URL, for `?endpoint=` of SMS_URL. */
  get url(): string {
    const address = this.#server?.address();
    if (typeof address !== 'object' || !address) throw new Error('the provider does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}
