/**
 * HTTP server of the page on which a person tries Web Push (docs/web-push.md). Only `npm start` runs
 * it. It can send pushes without a login, so it answers only to pages of this machine: it listens on
 * loopback, and checks `Host` (against names that lead to loopback) and `Origin` (against other
 * pages).
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Language } from '../../../shared/domain/texts/catalogue.ts';
import { browserProfile } from './profile.ts';
import { Refusal, TrySender, type TryService } from './sender.ts';
import { languageFor, texts } from './texts.ts';

const defaultPort = 8090;
const maxBodyBytes = 1000;

const site = new URL('./site/', import.meta.url);
const example = new URL('../../../examples/web/', import.meta.url);
/** Files of the site by path. The worker and the subscription are the example that users copy. */
const files: Record<string, { url: URL; type: string }> = {
  '/': { url: new URL('index.html', site), type: 'text/html' },
  '/page.js': { url: new URL('page.js', site), type: 'text/javascript' },
  '/page.css': { url: new URL('page.css', site), type: 'text/css' },
  '/sw.js': { url: new URL('sw.js', example), type: 'text/javascript' },
  '/carillon-push.js': { url: new URL('carillon-push.js', example), type: 'text/javascript' },
};

const registered = z.strictObject({ objectId: z.string().regex(/^[A-Za-z0-9]{1,64}$/) });
const sendOrder = registered.extend({
  number: z.int().min(0).max(0xffff_ffff),
});

export interface TryPage {
  /** Address of the page. Browsers treat `localhost` as a secure context, also without TLS. */
  url: string;
  /** Opens the page for the demo app. Before this call, the page says that the service starts. */
  open(service: TryService): void;
  close(): Promise<void>;
}

/** Starts the server on its default port, or on a free port if the default port is taken. */
export async function startTryPage(port = defaultPort): Promise<TryPage> {
  const pages = new TryPages();
  const server = createServer((request, response) => void pages.answer(request, response));
  await listenOn(server, port).catch(() => listenOn(server, 0));
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  pages.hosts = ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${bound}`);
  return {
    url: `http://localhost:${bound}/`,
    open: (service) => pages.open(service),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function listenOn(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}

interface Reply {
  status?: number;
  type?: string;
  body: string | Buffer;
}

const json = (value: unknown, status = 200): Reply => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});

class TryPages {
  hosts: string[] = [];
  #opened: { service: TryService; sender: TrySender } | undefined;

  open(service: TryService): void {
    this.#opened = { service, sender: new TrySender(service) };
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const language = languageFor(request.headers['accept-language']);
    const reply = await this.#replyTo(request, language).catch((error: unknown) =>
      refusalOf(error, language),
    );
    const { body, status = 200, type } = reply;
    response.writeHead(status, {
      'cache-control': 'no-store',
      'content-security-policy': this.#policy,
      'content-type': `${type}; charset=utf-8`,
      'referrer-policy': 'no-referrer',
      vary: 'Accept-Language',
      'x-content-type-options': 'nosniff',
    });
    response.end(body);
  }

  /** The page calls only its own server and the api. */
  get #policy(): string {
    const api = this.#opened?.service.api.url ?? '';
    return `default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ${api}; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  }

  async #replyTo(request: IncomingMessage, language: Language): Promise<Reply> {
    const { headers, method = '', url = '/' } = request;
    const [path = ''] = url.split('?');
    if (!this.hosts.includes(headers.host ?? '')) throw new Refusal(403, 'foreignHost');
    if (!this.#opened) throw new Refusal(503, 'starting');
    const { sender, service } = this.#opened;
    if (method === 'GET' || method === 'HEAD') {
      if (path === '/page.json') return json(describe(service, language));
      const file = files[path];
      if (file) return { type: file.type, body: await readFile(file.url) };
    } else if (method === 'POST') {
      if (headers.origin !== `http://${headers.host}` || !isJson(headers['content-type']))
        throw new Refusal(403, 'foreignOrigin');
      const body = await bodyOf(request);
      if (path === '/simulated') return json(await sender.registerSimulated());
      if (path === '/registered') {
        const { objectId } = parsed(registered, body);
        await sender.addTestDevice(objectId, texts[language].thisBrowser);
        return json({});
      }
      if (path === '/send') {
        const { pushText: alert, pushTitle: title } = texts[language];
        return json(await sender.send(parsed(sendOrder, body), { title, alert }));
      }
    }
    throw new Refusal(404, 'notFound');
  }
}

/** Returns what the page needs. The app key is public. */
const describe = ({ api, app, publicUrl }: TryService, language: Language) => ({
  language,
  texts: texts[language],
  api: { server: api.url, appId: app.appId, appKey: app.appKey, deviceProfile: browserProfile },
  console: `${publicUrl}/console/apps/${app.appId}`,
});

/** A page of another site can send other content types without asking first. */
const isJson = (type = ''): boolean => /^application\/json\s*(;|$)/i.test(type);

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const part = Buffer.from(chunk);
    bytes += part.length;
    if (bytes > maxBodyBytes) throw new Refusal(413, 'tooLarge', { limit: maxBodyBytes });
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Parses a body. Throws a refusal that names the first wrong member. */
function parsed<T>(shape: z.ZodType<T>, body: string): T {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new Refusal(400, 'badBody', { member: 'JSON' });
  }
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const member = unknown ?? issue?.path.join('.') ?? '';
  throw new Refusal(400, 'badBody', { member: member.replace(/[^\w.-]/g, '').slice(0, 40) });
}

function refusalOf(error: unknown, language: Language): Reply {
  const refused = error instanceof Refusal ? error : new Refusal(502, 'serviceFailed');
  const text = texts[language][refused.text].replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    String(refused.values[name] ?? ''),
  );
  return json({ code: refused.status, error: text }, refused.status);
}
