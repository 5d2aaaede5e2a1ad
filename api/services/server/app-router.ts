import { channelPath, routeTtlSeconds } from '../../../shared/domain/channel.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { ApiDeps } from '../deps.ts';

/** Where clients of our own channel find it (protocol/clients.md#app-router, protocol/channel.md#router). */
export class AppRouterService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * The WebSocket of the channel: `ws` or `wss` as the public URL says. There is one address, behind it
   * any number of processes, so the second choice is the first. Throws 404 when there is no such app.
   */
  async socketRoute(appId: string) {
    await this.#requireApp(appId);
    const base = this.#deps.config.publicUrl;
    const server = `${base.replace(/^http/, 'ws')}${channelPath}`;
    return { groupId: 'g0', groupUrl: base, server, secondary: server, ttl: routeTtlSeconds };
  }

  /** The app router's answer: host names without scheme, all of them ours. Throws 404 likewise. */
  async hosts(appId: string) {
    await this.#requireApp(appId);
    const { host } = new URL(this.#deps.config.publicUrl);
    return {
      ttl: routeTtlSeconds,
      api_server: host,
      push_server: host,
      engine_server: host,
      stats_server: host,
      rtm_router_server: host,
    };
  }

  async #requireApp(appId: string): Promise<void> {
    if (!(await this.#deps.appCache.app(appId))) throw refuse('notFound', 'There is no such app.');
  }
}
