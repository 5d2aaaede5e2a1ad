import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { DeclaringHost } from '../../../shared/db/tables/apps.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { FunctionStage } from '../../../shared/domain/apps/functions.ts';
import { type ErrorName, Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { type Json, measureJson, parseJson } from '../../../shared/domain/json.ts';
import { BodyBudget } from '../../../shared/http/body/budget.ts';
import { createHttpClient, ForwardClient, type HttpClient } from '../../../shared/http/client.ts';
import { type BatchReply, writeReply } from '../batch/reply-budget.ts';
import type { ApiDeps } from '../deps.ts';

/** Caller of a function, as described to the host. */
export interface FunctionCaller {
  app: App;
  isMaster: boolean;
  hasHookKey: boolean;
  stage: FunctionStage;
  sessionToken: string | undefined;
  remoteAddress: string;
}

/** Server that runs functions of an app. */
export interface FunctionHost {
  url: string;
  /** Streams calls of functions. Each app has its own connections. */
  forwardClient: ForwardClient;
  /** Sends short requests: hooks and lists of names. */
  httpClient: HttpClient;
}

/**
 * Maximum duration of a request to a host, which a hook before a write may use
 * (protocol/functions.md#hook-times).
 */
const maxRequestMs = 10_000;
const maxHosts = 1000;

/** Values that are safe in a header. A session token with other characters is invalid. */
const headerText = /^[\x21-\x7e]{1,512}$/;
const agentText = /^[\x20-\x7e]{1,512}$/;

/** Finds the server that runs an app's functions and caches its connections by app and URL. */
export class FunctionHosts {
  readonly #deps: Pick<ApiDeps, 'clock' | 'config' | 'vault'>;
  readonly #hosts = new Map<string, FunctionHost>();
  /** Name of this service in `Via`. All its processes use the same name. */
  readonly #pseudonym: string;

  constructor(deps: Pick<ApiDeps, 'clock' | 'config' | 'vault'>) {
    this.#deps = deps;
    this.#pseudonym = `carillon-${deps.vault.derive('via').slice(0, 12)}`;
  }

  /**
   * Returns the host of a stage. Returns undefined if the app has no host. If the app has no
   * staging host, returns the production host, so that a header cannot bypass its hooks.
   */
  find({ app, stage }: Pick<FunctionCaller, 'app' | 'stage'>): FunctionHost | undefined {
    const { functionsUrl, functionsStagingUrl } = app.options;
    const own = (stage === 'staging' ? functionsStagingUrl : null) ?? functionsUrl;
    const url = own ?? this.#deps.config.functionsUrl;
    return url === undefined ? undefined : this.#connect(app, url);
  }

  /**
   * Returns the key of a host in the database. The embedded host has a constant name, because its
   * port changes with every start.
   */
  declaringHostOf(
    { url }: FunctionHost,
    { app, stage }: Pick<FunctionCaller, 'app' | 'stage'>,
  ): DeclaringHost {
    const isStaging = stage === 'staging' && url === app.options.functionsStagingUrl;
    return {
      appId: app.appId,
      stage: isStaging ? 'staging' : 'production',
      url: url === this.#deps.config.functionsUrl ? 'embedded' : url,
    };
  }

  #connect({ appId }: App, url: string): FunctionHost {
    const key = `${appId} ${url}`;
    const cached = this.#hosts.get(key);
    if (cached) {
      // Moves the host to the end, so that the least recently used host is closed first.
      this.#hosts.delete(key);
      this.#hosts.set(key, cached);
      return cached;
    }
    const [oldest] = this.#hosts;
    if (oldest && this.#hosts.size >= maxHosts) {
      this.#hosts.delete(oldest[0]);
      void closeHost(oldest[1]);
    }
    const timing = { connectMs: 3000, requestMs: maxRequestMs, drainMs: 1000 };
    const { clock, config } = this.#deps;
    const isTrustedUrl = url === config.functionsUrl;
    const httpClient = createHttpClient({
      baseUrl: url,
      isTrustedUrl,
      timing,
      connections: 64,
      clock,
    });
    const host = { url, forwardClient: new ForwardClient(url, { isTrustedUrl }), httpClient };
    this.#hosts.set(key, host);
    return host;
  }

  /**
   * Returns the headers that describe a caller to a host: app id, a key of the same kind, session,
   * stage and IP address (protocol/functions.md#host-protocol). No header of the caller is copied,
   * so a caller cannot change the request.
   */
  headers(caller: FunctionCaller, host: FunctionHost): Record<string, string> {
    const { app, isMaster, hasHookKey, stage, sessionToken, remoteAddress } = caller;
    return {
      'x-lc-id': app.appId,
      'x-lc-key': isMaster ? `${app.masterKey},master` : app.appKey,
      'x-lc-prod': stage === 'staging' ? '0' : '1',
      ...(hasHookKey ? { 'x-lc-hook-key': app.hookKey } : {}),
      ...(sessionToken && headerText.test(sessionToken) ? { 'x-lc-session': sessionToken } : {}),
      ...(remoteAddress ? { 'x-real-ip': remoteAddress, 'x-forwarded-for': remoteAddress } : {}),
      via: `1.1 ${this.#pseudonym}`,
      ...this.#embeddedHeaders(app, host),
    };
  }

  /**
   * Returns the headers of a request for the list of hooks. Instead of the master key, the host
   * gets the hook key and a signature that proves the master key. The Node, Python and PHP engines
   * accept the signature. Its time is not a number, so the signature is useless at the public API,
   * which accepts only numbers (protocol/clients.md#request-signature). The Go and Java engines
   * compare the master key itself, which the option `functionsMasterKey` sends.
   */
  listHeaders(caller: FunctionCaller, host: FunctionHost): Record<string, string> {
    const { app } = caller;
    const isMaster = app.options.functionsMasterKey;
    const { 'x-lc-key': key = '', ...headers } = this.headers(
      { ...caller, isMaster, hasHookKey: true, sessionToken: undefined },
      host,
    );
    if (isMaster) return { ...headers, 'x-lc-key': key };
    const time = `hooks-${this.#deps.clock.now()}`;
    const sign = createHash('md5').update(`${time}${app.masterKey}`).digest('hex');
    return { ...headers, 'x-lc-sign': `${sign},${time},master` };
  }

  /**
   * Returns the keys that functions need if they run in the embedded host, which has no keys of its
   * own.
   */
  #embeddedHeaders(app: App, { url }: FunctionHost): Record<string, string> {
    const { functionsUrl, functionsToken } = this.#deps.config;
    if (url !== functionsUrl || functionsToken === undefined) return {};
    return {
      'x-carillon-functions-token': functionsToken,
      'x-carillon-app-key': app.appKey,
      'x-carillon-master-key': app.masterKey,
    };
  }

  /**
   * Returns whether a call already passed this service. A functions URL that leads back to this
   * service would loop.
   */
  isLoop(via: string): boolean {
    return via.includes(this.#pseudonym);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map(closeHost));
  }
}

const closeHost = ({ forwardClient, httpClient }: FunctionHost) =>
  Promise.all([forwardClient.close(), httpClient.close()]);

/** Returns the headers that name the client software, without unsafe values. */
export function agentHeaders({
  userAgent,
  clientAgent,
}: {
  userAgent: string;
  clientAgent: string;
}) {
  return {
    ...(agentText.test(userAgent) ? { 'user-agent': userAgent } : {}),
    ...(agentText.test(clientAgent) ? { 'x-lc-ua': clientAgent } : {}),
  };
}

const mb = 1024 * 1024;

/** Maximum number of bytes of responses in memory, per process and per app. */
const answerLimits = { total: 128 * mb, perSender: 64 * mb };

/** Byte order mark, which PHP files may print before the response. */
const byteOrderMark = '\u{feff}';
const withoutMark = (text: string): string =>
  text.startsWith(byteOrderMark) ? text.slice(1) : text;

/**
 * Returns the JSON value of a response. Returns undefined if the response is not a complete JSON
 * text.
 */
export function hostValue(text: string): Json | undefined {
  try {
    return parseJson(withoutMark(text));
  } catch {
    return undefined;
  }
}

/** Returns the reason why a text is not forwarded as JSON. Returns undefined for JSON. */
function faultOf(text: string): string | undefined {
  if (text.trim() === '') return 'The function host gave an empty answer.';
  if (measureJson(text) === undefined)
    return 'The answer of the function host has too many values.';
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'The function host gave an answer that is no whole JSON text.';
  }
}

/**
 * Responses of function hosts that are sent to callers. A response is read completely before it is
 * sent, because an incomplete response must not reach the caller. The text decides whether a
 * response is JSON, not its `Content-Type`: the Go engine sends `text/plain`, the PHP engine
 * `application; charset=utf-8;` (protocol/functions.md#answers-of-a-host).
 */
export class HostAnswers {
  readonly #budget = new BodyBudget(answerLimits);

  /** Number of bytes in memory. */
  get usedBytes(): number {
    return this.#budget.bytes;
  }

  /**
   * Reads a response of an app's host and returns its JSON text unchanged. The response counts as
   * used memory until it is sent. Throws error 502 if the response is empty, not UTF-8, not JSON,
   * or incomplete. Throws error 429 if the responses of the app use too much memory, error 503 if
   * those of the process do.
   */
  async read(appId: string, body: Readable): Promise<BatchReply> {
    const account = this.#budget.open([`app ${appId}`]);
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of body) {
        const bytes = Buffer.from(chunk);
        account.take(bytes.length);
        chunks.push(bytes);
      }
      const text = decoded(Buffer.concat(chunks));
      const fault =
        text === undefined ? 'The answer of the function host is not UTF-8.' : faultOf(text);
      if (text === undefined || fault !== undefined) throw refuse('badGateway', fault);
      return writeReply({ begin: '', parts: [text], end: '' }, () => account.release());
    } catch (error) {
      account.release();
      if (error instanceof Refusal) throw full.has(error.kind) ? fullRefusal(error) : error;
      throw refuse('badGateway', 'The answer of the function host broke off, or is too large.');
    }
  }
}

const full: ReadonlySet<ErrorName> = new Set(['tooManyRequests', 'unavailable']);

const fullRefusal = ({ kind }: Refusal): Refusal =>
  new Refusal(kind, {
    text: 'The function ran. Too many large answers of functions are on their way.',
    retryAfterSeconds: 1,
  });

/** Decodes UTF-8 and removes a byte order mark. Returns undefined if the bytes are not UTF-8. */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
