import { Agent, type IncomingMessage, request } from 'node:http';

/** Body and headers of a call. */
export interface KeepAliveCall {
  path: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST; GET without it. */
  body?: object;
}

/** HTTP client over connections that stay open. It costs less processor time per call than `fetch`. */
export class KeepAliveClient {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** Sends a call and returns the text of its reply. Throws an error with the text when the call is refused. */
  async send({ path, headers, body }: KeepAliveCall): Promise<string> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const response = await this.#exchange(path, headers, text);
    const reply = await readText(response);
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw new Error(`${path} answered ${status}: ${reply}`);
    return reply;
  }

  close(): void {
    this.#agent.destroy();
  }

  #exchange(path: string, headers: Record<string, string>, text: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const method = text === '' ? 'GET' : 'POST';
      const sent = request(`${this.#url}${path}`, { agent: this.#agent, method, headers }, resolve);
      sent.on('error', reject);
      sent.end(text);
    });
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
