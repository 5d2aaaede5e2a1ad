import type { DeclaringHost } from '../../../shared/db/tables/apps/declared-hooks.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { FunctionStage } from '../../../shared/domain/apps/functions.ts';
import { createHttpClient, type HttpClient } from '../../../shared/http/client.ts';
import { createForwardClient, type ForwardClient } from '../../../shared/http/forward.ts';
import type { ApiDeps } from '../deps.ts';

/** Who calls, and what a function host is told of it. */
export interface FunctionCaller {
  app: App;
  isMaster: boolean;
  hasHookKey: boolean;
  stage: FunctionStage;
  sessionToken: string | undefined;
  remoteAddress: string;
}

/** One server that runs functions of an app. */
export interface FunctionHost {
  url: string;
  /** For calls of functions: streamed. One app's calls wait for no other's. */
  forwardClient: ForwardClient;
  /** For hooks and lists of names: short. */
  httpClient: HttpClient;
}

/** Of hooks that are run before a write (protocol/functions.md#hook-times): the longest. */
const maxRequestMs = 10_000;
const maxHosts = 1000;

/** What may stand in a header as it is; a token of a session that holds anything else is none. */
const headerText = /^[\x21-\x7e]{1,512}$/;
const agentText = /^[\x20-\x7e]{1,512}$/;

/** Which server runs an app's functions, and connections to it, kept by app and address. */
export class FunctionHosts {
  readonly #deps: Pick<ApiDeps, 'clock' | 'config' | 'vault'>;
  readonly #hosts = new Map<string, FunctionHost>();
  /** Names this service in `Via`, on every of its processes. */
  readonly #pseudonym: string;

  constructor(deps: Pick<ApiDeps, 'clock' | 'config' | 'vault'>) {
    this.#deps = deps;
    this.#pseudonym = `carillon-${deps.vault.derive('via').slice(0, 12)}`;
  }

  /**
   * The host of a stage; undefined when the app has none. Without a staging host production answers: else a header
   * would be enough to go round the hooks.
   */
  find({ app, stage }: Pick<FunctionCaller, 'app' | 'stage'>): FunctionHost | undefined {
    const { functionsUrl, functionsStagingUrl } = app.options;
    const own = (stage === 'staging' ? functionsStagingUrl : null) ?? functionsUrl;
    const url = own ?? this.#deps.config.functionsUrl;
    return url === undefined ? undefined : this.#connect(app, url);
  }

  /** Where a host stands; the embedded one by a name, since its port changes with every start. */
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
    const known = this.#hosts.get(key);
    if (known) return known;
    const [oldest] = this.#hosts;
    if (oldest && this.#hosts.size >= maxHosts) {
      this.#hosts.delete(oldest[0]);
      void closeHost(oldest[1]);
    }
    const timing = { connectMs: 3000, requestMs: maxRequestMs, drainMs: 1000 };
    const httpClient = createHttpClient({ baseUrl: url, timing, connections: 64, clock: this.#deps.clock });
    const host = { url, forwardClient: createForwardClient(url), httpClient };
    this.#hosts.set(key, host);
    return host;
  }

  /**
   * What a host is told of a caller: the id and the key of its own class, the session, the stage, the address
   * (protocol/functions.md#host-protocol). Every header is ours, so that none of a caller's can change what the request is.
   */
  headers(caller: FunctionCaller, host: FunctionHost): Record<string, string> {
    const { app, isMaster, hasHookKey, stage, sessionToken, remoteAddress } = caller;
    const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '');
    return {
      'x-lc-id': app.appId,
      'x-lc-key': isMaster ? `${app.masterKey},master` : app.appKey,
      'x-lc-prod': stage === 'staging' ? '0' : '1',
      ...(hasHookKey ? { 'x-lc-hook-key': app.hookKey } : {}),
      ...(sessionToken && headerText.test(sessionToken) ? { 'x-lc-session': sessionToken } : {}),
      ...(address ? { 'x-real-ip': address, 'x-forwarded-for': address } : {}),
      via: `1.1 ${this.#pseudonym}`,
      ...this.#embeddedHeaders(app, host),
    };
  }

  /** The embedded host knows no app's keys; it is given what functions work with. */
  #embeddedHeaders(app: App, { url }: FunctionHost): Record<string, string> {
    const { functionsUrl, functionsToken } = this.#deps.config;
    if (url !== functionsUrl || functionsToken === undefined) return {};
    return {
      'x-carillon-functions-token': functionsToken,
      'x-carillon-app-key': app.appKey,
      'x-carillon-master-key': app.masterKey,
    };
  }

  /** Whether a call has passed here before: an address of functions that leads back to us would never end. */
  isLoop(via: string): boolean {
    return via.includes(this.#pseudonym);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map(closeHost));
  }
}

const closeHost = ({ forwardClient, httpClient }: FunctionHost) =>
  Promise.all([forwardClient.close(), httpClient.close()]);

/** Names of clients as they may be passed on. */
export function agentHeaders({ userAgent, clientAgent }: { userAgent: string; clientAgent: string }) {
  return {
    ...(agentText.test(userAgent) ? { 'user-agent': userAgent } : {}),
    ...(agentText.test(clientAgent) ? { 'x-lc-ua': clientAgent } : {}),
  };
}
