/** A headless Firefox with a push service on this machine, and the site that it shows. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PushService } from './push-service.ts';

/** True if Debian's Firefox is installed. */
export const hasFirefox = (): boolean => {
  try {
    execFileSync('firefox-esr', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

const examples = fileURLToPath(new URL('../../../examples/web/', import.meta.url));
const types: Record<string, string> = {
  '.js': 'text/javascript',
  '.html': 'text/html',
  '.webmanifest': 'application/manifest+json',
};

/** A page that runs the example, and reports what happens to it. */
const testPage = `<!doctype html><meta charset="utf-8"><script type="module">
  import { CarillonPush } from '/carillon-push.js';
  const report = (what) => fetch('/report', { method: 'POST', body: JSON.stringify(what) });
  navigator.serviceWorker.addEventListener('message', ({ data }) => report(data));
  // Firefox loses a subscription that is requested before its push module has started.
  await fetch('/hello');
  const { server, appId, appKey } = Object.fromEntries(new URLSearchParams(location.search));
  const push = new CarillonPush({ server, appId, appKey });
  try {
    report({ type: 'registered', objectId: await push.refresh() });
  } catch (error) {
    report({ type: 'failed', message: String(error) });
  }
</script>`;

/** The same page with the `leancloud-storage` SDK. */
const sdkPage = `<!doctype html><meta charset="utf-8"><script src="/av.js"></script>
<script type="module">
  import { subscribe } from '/leancloud-sdk/push.js';
  const report = (what) => fetch('/report', { method: 'POST', body: JSON.stringify(what) });
  navigator.serviceWorker.addEventListener('message', ({ data }) => report(data));
  await fetch('/hello');
  const { server, appId, appKey } = Object.fromEntries(new URLSearchParams(location.search));
  AV.init({ appId, appKey, serverURL: server });
  try {
    report({ type: 'registered', objectId: await subscribe(AV, { channels: ['news'] }) });
  } catch (error) {
    report({ type: 'failed', message: String(error) });
  }
</script>`;
const pages: Record<string, string> = { '/': testPage, '/sdk': sdkPage };
const sdk = createRequire(import.meta.url).resolve('leancloud-storage/dist/av-min.js');

export interface Report {
  type: string;
  objectId?: string;
  message?: string;
  title?: string;
  options?: { body?: string; tag?: string };
  data?: Record<string, unknown>;
}

/** Serves the example, and collects the reports of its page. */
export class Site {
  readonly reports: Report[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(push: PushService): Promise<Site> {
    const server = createServer();
    const site = new Site(server);
    server.on('request', async (request, response) => {
      const path = new URL(request.url ?? '/', 'http://localhost').pathname;
      if (path === '/hello') {
        await push.untilHello();
        response.end();
      } else if (path === '/report') {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        site.reports.push(JSON.parse(Buffer.concat(chunks).toString()) as Report);
        response.end();
      } else if (pages[path] !== undefined)
        response.writeHead(200, { 'content-type': 'text/html' }).end(pages[path]);
      else {
        const file = path === '/av.js' ? sdk : join(examples, path);
        const body = await readFile(file).catch(() => null);
        const type = types[extname(path)] ?? 'text/plain';
        response.writeHead(body ? 200 : 404, { 'content-type': type }).end(body ?? '');
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return site;
  }

  /** Address of the page. `localhost` is a secure context. */
  url(parameters: Record<string, string>, path = '/'): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://localhost:${port}${path}?${new URLSearchParams(parameters)}`;
  }

  /** Returns the reports of one type. */
  of(type: string): Report[] {
    return this.reports.filter((report) => report.type === type);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const preferences = {
  'dom.push.testing.allowInsecureServerURL': true,
  'permissions.default.desktop-notification': 1,
  'alerts.useSystemBackend': false,
  'dom.push.retryBaseInterval': 500,
  // After a kill, Firefox would open the pages of the session before, beside the page of the test.
  'browser.sessionstore.resume_from_crash': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'app.update.enabled': false,
};

/** Firefox with a profile of its own, which survives a restart. */
export class Firefox {
  readonly #profile: string;
  #process: ChildProcess | undefined;

  private constructor(profile: string) {
    this.#profile = profile;
  }

  static async create(push: PushService, more: object = {}): Promise<Firefox> {
    const profile = await mkdtemp(join(tmpdir(), 'carillon-firefox-'));
    const all = { ...preferences, 'dom.push.serverURL': push.socketUrl, ...more };
    const lines = Object.entries(all).map(
      ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
    );
    await writeFile(join(profile, 'user.js'), lines.join('\n'));
    return new Firefox(profile);
  }

  start(url: string, ...more: string[]): void {
    const args = ['--headless', '--no-remote', '--profile', this.#profile, ...more, url];
    const env = { ...process.env, HOME: this.#profile, MOZ_HEADLESS: '1' };
    this.#process = spawn('firefox-esr', args, { env, stdio: 'ignore' });
  }

  /** Ends Firefox. Resolves when the process has exited. */
  async stop(): Promise<void> {
    const running = this.#process;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGTERM');
    const timer = setTimeout(() => running.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
  }

  async delete(): Promise<void> {
    await this.stop();
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
