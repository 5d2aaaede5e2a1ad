import type { Readable } from 'node:stream';
import { listBreakers } from '../../../../shared/db/tables/gateways.ts';
import { mayUseApp, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import type { OperatorIdentities } from '../access/tokens.ts';
import { requireApp } from '../apps.ts';
import { toBreakerReply } from '../breakers.ts';
import type { OverviewService } from '../overview/overview.ts';
import { EventHub } from './hub.ts';
import type { Topic } from './poller.ts';

const openPushPollMs = 250;
/** Receipts of gateways can arrive after the end of a push, so it is still polled. */
const closedPushPollMs = 5000;
const overviewPollMs = 2000;
const statePollMs = 1000;

const finished = new Set(['done', 'failed', 'cancelled']);

interface EventServices {
  records: PushRecordService;
  overview: OverviewService;
  identities: OperatorIdentities;
}

/**
 * Live updates of pushes, the overview, breakers and queues (protocol/admin-api.md#live-updates).
 */
export class EventService {
  readonly #deps: ApiDeps;
  readonly #services: EventServices;
  readonly hub = new EventHub();
  /** Searches for pushes in progress, by topic. Tabs that open together share a search. */
  readonly #lookups = new Map<string, Promise<string>>();

  constructor(deps: ApiDeps, services: EventServices) {
    this.#deps = deps;
    this.#services = services;
  }

  /**
   * Opens a stream of topics. Throws error 400 for an unknown topic, error 403 for a topic of
   * another app, error 404 for an unknown push or app, error 429 if there are too many streams.
   */
  async open(operator: Operator, names: readonly string[]): Promise<Readable> {
    const topics: Topic[] = [];
    for (const name of new Set(names)) topics.push(await this.#topicOf(operator, name));
    const { identities } = this.#services;
    const { session, tokenId, role, apps } = operator;
    const holder = session ? `session ${session.id}` : `token ${tokenId ?? ''}`;
    // A login may change the rights. Streams with the earlier rights have another check.
    const key = `${holder} ${JSON.stringify([role, apps])}`;
    const token = String(tokenId);
    return this.hub.open(topics, { key, token, hasAccess: () => identities.isCurrent(operator) });
  }

  async #topicOf(operator: Operator, name: string): Promise<Topic> {
    const [kind = '', subject = ''] = splitOnce(name, ':');
    switch (kind) {
      case 'push':
        return this.#pushTopic(operator, name, subject);
      case 'overview':
        return this.#overviewTopic(operator, subject);
      case 'breakers':
        return this.#breakersTopic(operator);
      case 'queues':
        return { key: 'queues', name: 'queues', poll: () => this.#queues() };
      default:
        throw refuse('invalidParameter', detail('unknownTopic'));
    }
  }

  async #pushTopic(operator: Operator, name: string, subject: string): Promise<Topic> {
    const [appId = '', id = ''] = splitOnce(subject, '/');
    requireOwnApp(operator, appId);
    const objectId = await this.#objectIdOf(appId, id);
    let lastStatus: unknown;
    return {
      // All listeners of a topic get the same bytes, which contain its name.
      key: pushKey(appId, objectId) + (id === objectId ? '' : ` as ${id}`),
      name,
      poll: async () => {
        const push = await this.#services.records.find(appId, objectId);
        const { state } = push;
        const progress = await this.#services.records.progressOf(push);
        const event = lastStatus === undefined || lastStatus === state ? 'progress' : 'state';
        lastStatus = state;
        const pollAfterMs = finished.has(state) ? closedPushPollMs : openPushPollMs;
        return { event, data: { state, ...progress }, pollAfterMs };
      },
    };
  }

  /**
   * Finds a push by an id. Needs no query if its topic is already polled. Throws error 101 (status
   * 404) if the push does not exist.
   */
  async #objectIdOf(appId: string, id: string): Promise<string> {
    const key = pushKey(appId, id);
    if (this.hub.isPolled(key)) return id;
    const running = this.#lookups.get(key);
    if (running) return running;
    const lookup = this.#services.records.find(appId, id).then(({ objectId }) => objectId);
    this.#lookups.set(key, lookup);
    return lookup.finally(() => this.#lookups.delete(key));
  }

  /** All listeners share one state, so it contains only what the lowest role may see. */
  async #overviewTopic(operator: Operator, appId: string): Promise<Topic> {
    if (appId !== '') {
      requireOwnApp(operator, appId);
      await requireApp(this.#deps, appId);
    }
    const apps = appId === '' ? operator.apps : [appId];
    const viewer: Operator = { ...operator, role: 'viewer', apps };
    const poll = async () => ({
      event: 'overview',
      data: await this.#services.overview.read(viewer, appId === '' ? undefined : appId),
      pollAfterMs: overviewPollMs,
    });
    // `overview:` is the same topic as `overview`, and its listeners get the same bytes.
    const name = appId === '' ? 'overview' : `overview:${appId}`;
    return { key: `overview:${appId} ${keyOf(apps)}`, name, poll };
  }

  #breakersTopic({ apps }: Operator): Topic {
    const poll = async () => {
      const all = await listBreakers(this.#deps.db);
      const results = all.filter(({ appId }) => mayUseApp({ apps }, appId)).map(toBreakerReply);
      return { event: 'breakers', data: { results }, pollAfterMs: statePollMs };
    };
    return { key: `breakers ${keyOf(apps)}`, name: 'breakers', poll };
  }

  async #queues() {
    return {
      event: 'queues',
      data: { results: await this.#deps.queue.states() },
      pollAfterMs: statePollMs,
    };
  }
}

const pushKey = (appId: string, objectId: string): string => `push:${appId}/${objectId}`;

const keyOf = (apps: readonly string[] | null): string =>
  apps === null ? '*' : apps.toSorted().join(' ');

function requireOwnApp(operator: Operator, appId: string): void {
  if (!mayUseApp(operator, appId)) throw refuse('forbidden', detail('otherApps'));
}

/** Splits a text at the first separator. */
function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}
