/** A real ntfy server, which is a push server of UnifiedPush, and a subscriber of its topics. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from 'node:tls';
import { z } from 'zod';
import { freePort } from '../../../ops/local/ports.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';

/** Line of the JSON stream of a topic. */
const eventForm = z.object({
  event: z.string(),
  message: z.string().optional(),
  encoding: z.string().optional(),
});

export class Ntfy {
  /** `host:port`, as in WEBPUSH_HOSTS. */
  readonly host: string;
  readonly #ca: string;
  readonly #child: ChildProcess;
  readonly #directory: string;

  private constructor(host: string, ca: string, child: ChildProcess, directory: string) {
    this.host = host;
    this.#ca = ca;
    this.#child = child;
    this.#directory = directory;
  }

  /** Starts a server with these lines of `server.yml`. Resolves when it accepts connections. */
  static async start(settings: readonly string[] = []): Promise<Ntfy> {
    const { authority, server } = await loopbackIdentity();
    const directory = await mkdtemp(join(tmpdir(), 'carillon-ntfy-'));
    const host = `127.0.0.1:${await freePort()}`;
    const file = (name: string) => join(directory, name);
    await writeFile(file('key.pem'), server.privateKey);
    await writeFile(file('cert.pem'), server.certificate);
    const lines = [
      `base-url: https://${host}`,
      'listen-http: "-"',
      `listen-https: ${host}`,
      `key-file: ${file('key.pem')}`,
      `cert-file: ${file('cert.pem')}`,
      'web-root: disable',
      // Without a file and a wait for locks, ntfy answers 500 to concurrent messages.
      `cache-file: ${file('cache.db')}`,
      'cache-startup-queries: "pragma journal_mode = WAL; pragma busy_timeout = 15000;"',
      // A topic takes messages only if a phone has subscribed, as on ntfy.sh.
      'visitor-subscriber-rate-limiting: true',
      ...settings,
    ];
    await writeFile(file('server.yml'), `${lines.join('\n')}\n`);
    const child = spawn('ntfy', ['serve', '--config', file('server.yml')], { stdio: 'ignore' });
    const ntfy = new Ntfy(host, authority.certificate, child, directory);
    while (child.exitCode === null && !(await ntfy.#isUp()))
      await new Promise((resolve) => setTimeout(resolve, 20));
    if (child.exitCode !== null) throw new Error('ntfy has ended');
    return ntfy;
  }

  /** Returns the endpoint that the ntfy app gives to an app with UnifiedPush. */
  endpointOf(topic: string): string {
    return `https://${this.host}/${topic}?up=1`;
  }

  /**
   * Subscribes to a topic, as the ntfy app on a phone does. Resolves when the server has the
   * subscription. `messages` fills with the bytes that arrive.
   */
  async subscribe(topic: string): Promise<{ messages: Buffer[]; end(): void }> {
    const messages: Buffer[] = [];
    const calling = request(`https://${this.host}/${topic}/json`, { ca: this.#ca }).end();
    const [response] = await once(calling, 'response');
    // Ending the subscription aborts the response.
    response.on('error', () => undefined);
    calling.on('error', () => undefined);
    const isOpen = Promise.withResolvers<void>();
    createInterface({ input: response })
      .on('line', (line) => {
        const { encoding, event, message = '' } = eventForm.parse(JSON.parse(line));
        if (event === 'open') isOpen.resolve();
        if (event === 'message')
          messages.push(Buffer.from(message, encoding === 'base64' ? 'base64' : 'utf8'));
      })
      .on('error', () => undefined);
    await isOpen.promise;
    return { messages, end: () => calling.destroy() };
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill();
      await once(this.#child, 'exit');
    }
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #isUp(): Promise<boolean> {
    const [host = '', port = ''] = this.host.split(':');
    const socket = connect({ host, port: Number(port), ca: this.#ca });
    const isUp = await new Promise<boolean>((resolve) =>
      socket.once('secureConnect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    return isUp;
  }
}
