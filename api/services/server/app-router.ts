import { refuse } from '../../../shared/domain/errors/errors.ts';
import { channelPath, routeTtlSeconds } from '../../../shared/domain/installations/installation.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Returns the addresses of the service for clients of the device channel
 * (protocol/clients.md#app-router, protocol/channel.md#router).
 */
export class AppRouterService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the WebSocket URL of the device channel. All processes share one address, so
   * `secondary` equals `server`. Throws 404 if the app does not exist.
   */
  async socketRoute(appId: string) {
    await this.#requireApp(appId);
    const base = this.#deps.config.publicUrl;
    const server = `${base.replace(/^http/, 'ws')}${channelPath}`;
    return { groupId: 'g0', groupUrl: base, server, secondary: server, ttl: routeTtlSeconds };
  }

  /**
   * Returns the host name of Carillon for every service that clients expect. Throws 404 if the app
   * does not exist.
   */
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
    if (!(await this.#deps.appCache.app(appId))) throw refuse('notFound', detail('noApp'));
  }
}
