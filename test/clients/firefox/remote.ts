import { once } from 'node:events';
import { WebSocket } from 'ws';

/** Remote control of a Firefox by WebDriver BiDi, as far as the tests need it. */
export class Remote {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: Record<string, unknown>) => void>();
  #calls = 0;
  #context = '';

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      const reply = JSON.parse(String(data)) as { id?: number };
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply);
    });
  }

  /** Connects to a Firefox that was started with `--remote-debugging-port`. */
  static async connect(port: number, triesLeft = 100): Promise<Remote> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/session`);
    try {
      await once(socket, 'open');
    } catch (error) {
      if (triesLeft === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return Remote.connect(port, triesLeft - 1);
    }
    const remote = new Remote(socket);
    await remote.#call('session.new', { capabilities: {} });
    const { contexts } = (await remote.#call('browsingContext.getTree', {})) as {
      contexts: { context: string }[];
    };
    remote.#context = contexts[0]?.context ?? '';
    return remote;
  }

  /** Opens a page in the first tab. Resolves when it is loaded. */
  async open(url: string): Promise<void> {
    await this.#call('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  /** Evaluates JavaScript in the page, as if a person had pressed a key. Returns a text. */
  async evaluate(expression: string): Promise<string> {
    const reply = (await this.#call('script.evaluate', {
      expression: `(async () => String(await (${expression})))()`,
      target: { context: this.#context },
      awaitPromise: true,
      userActivation: true,
    })) as { result?: { value: string }; exceptionDetails?: { text: string } };
    if (!reply.result) throw new Error(`${expression}: ${reply.exceptionDetails?.text}`);
    return reply.result.value;
  }

  close(): void {
    this.#socket.terminate();
  }

  async #call(method: string, params: object): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const replied = new Promise<Record<string, unknown>>((resolve) =>
      this.#waiting.set(id, resolve),
    );
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { error, message, result } = await replied;
    if (error !== undefined) throw new Error(`${method}: ${String(error)}: ${String(message)}`);
    return result;
  }
}
