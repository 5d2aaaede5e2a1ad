import type { Handle } from '../../../../shared/db/pool.ts';
import {
  type Backlog,
  countWaiting,
  type DeliveryRow,
  insertManual,
  listDeliveries,
  redeliver,
} from '../../../../shared/db/tables/webhook-deliveries.ts';
import {
  deleteEndpoint,
  type Endpoint,
  type EndpointKey,
  findEndpoint,
  listEndpoints,
  lockEndpoints,
  saveEndpoint,
  saveKey,
  wakeEndpoints,
} from '../../../../shared/db/tables/webhooks.ts';
import { hasRole, type OperatorRole } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import {
  deliveryId,
  deliveryNumber,
  type EndpointBody,
  endpointNamePattern,
  newSigningKey,
  secretText,
  serviceOwner,
  typesForPrograms,
  webhookLimits,
} from '../../../../shared/domain/webhooks/endpoint.ts';
import { testEventType } from '../../../../shared/domain/webhooks/event-types.ts';
import { isListedUrl, isRefusedUrl } from '../../../../shared/http/outbound-addresses.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';
import { type PageRequest, toPage } from '../lists/page.ts';

/** Endpoint that was stored. `isNew`: it was created. */
export interface StoredWebhook {
  webhook: WebhookReply;
  isNew: boolean;
}

export type WebhookReply = ReturnType<typeof toReply> & { secret?: string };

interface DeliveryFilter {
  state?: string | undefined;
  type?: string | undefined;
}

/**
 * Manages the endpoints of webhooks of an app, or of the service (`serviceOwner`), and lists their
 * deliveries (protocol/admin-api.md#webhooks).
 */
export class WebhookService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists endpoints by name. Throws error 404 if the app does not exist. */
  async list(appId: string, role: OperatorRole): Promise<WebhookReply[]> {
    await this.#requireOwner(appId);
    const { db, vault } = this.#deps;
    const backlogs = await countWaiting(db, appId);
    return (await listEndpoints(db, vault, appId)).map((endpoint) =>
      toReply(endpoint, backlogs, role),
    );
  }

  /** Returns an endpoint. Throws error 404 if it does not exist. */
  async get(key: EndpointKey, role: OperatorRole): Promise<WebhookReply> {
    const found = await findEndpoint(this.#deps.db, this.#deps.vault, key);
    return this.#describe(found ?? noSuchWebhook(), role);
  }

  /**
   * Creates or replaces an endpoint. The reply contains the secret only if the endpoint is new.
   * Throws error 404 if the app does not exist, error 400 if a member is invalid or the address is
   * private, error 154 if there are too many endpoints, error 403 if a caller below the role owner
   * changes the URL.
   */
  async put(key: EndpointKey, sent: EndpointBody, role: OperatorRole): Promise<StoredWebhook> {
    if (!endpointNamePattern.test(key.name))
      throw refuse('invalidParameter', detail('webhookName'));
    await this.#requireOwner(key.appId);
    const body = await this.#withUrl(key, sent);
    checkBody(body);
    const { db, vault, appCache } = this.#deps;
    const { stored, before } = await db.transaction(async (tx) => {
      const others = await lockEndpoints(tx, key.appId);
      const existing = await findEndpoint(tx, vault, key, { isLocked: true });
      if (!existing && others >= webhookLimits.endpoints)
        throw refuse('thresholdExceeded', detail('webhookLimit', { n: webhookLimits.endpoints }));
      if (!hasRole(role, 'owner')) requireKeptUrl(body, existing);
      const settings = { ...key, ...settingsOf(body, existing) };
      const isMoved = existing?.secrets.url !== body.url;
      const saved = await saveEndpoint(tx, vault, settings, { isMoved });
      await this.#audit(tx, key, {
        verb: 'put',
        ...(existing ? { before: auditedOf(existing) } : {}),
        after: auditedOf(saved),
      });
      return { stored: saved, before: existing };
    });
    appCache.forget(key.appId);
    const webhook = await this.#describe(stored, role);
    if (before) return { webhook, isNew: false };
    return { webhook: { ...webhook, secret: secretText(stored.secrets.key) }, isNew: true };
  }

  /** Deletes an endpoint with its deliveries. Throws error 404 if it does not exist. */
  async delete(key: EndpointKey): Promise<void> {
    await this.#change(key, async (tx, existing) => {
      await deleteEndpoint(tx, key);
      await this.#audit(tx, key, { verb: 'delete', before: auditedOf(existing) });
    });
  }

  /**
   * Replaces the secret, and returns the new one. Requests have two signatures until the old secret
   * ends, after 24 hours. Throws error 404 if the endpoint does not exist.
   */
  async rotate(key: EndpointKey, role: OperatorRole): Promise<WebhookReply> {
    const signingKey = newSigningKey();
    const previousUntil = new Date(this.#deps.clock.now() + webhookLimits.rotationMs);
    await this.#change(key, async (tx, { secrets }) => {
      const rotated = { ...key, secrets };
      await saveKey(tx, this.#deps.vault, rotated, { key: signingKey, previousUntil });
      await this.#audit(tx, key, { verb: 'rotate' });
    });
    return { ...(await this.get(key, role)), secret: secretText(signingKey) };
  }

  /**
   * Sends an event `webhook.test` to an endpoint, also while it is off. Returns its delivery. Throws
   * error 404 if the endpoint does not exist.
   */
  test(key: EndpointKey) {
    return this.#send(key, (tx) =>
      insertManual(tx, key, { type: testEventType, data: { webhook: key.name } }),
    );
  }

  /**
   * Sends a delivery again, with the current secret, also while the endpoint is off. Throws error
   * 404 if the endpoint or the delivery does not exist.
   */
  redeliver(key: EndpointKey, id: string) {
    const number = deliveryNumber(id);
    return this.#send(key, async (tx) => {
      const sent = number === undefined ? undefined : await redeliver(tx, key, number);
      if (!sent) throw refuse('notFound', detail('noDelivery'));
      await this.#audit(tx, key, { verb: 'redeliver', after: { delivery: deliveryId(sent) } });
      return sent;
    });
  }

  /** Lists deliveries, newest first. Throws error 404 if the endpoint does not exist. */
  async deliveries(key: EndpointKey, { before, limit, ...filter }: DeliveryFilter & PageRequest) {
    const { db, vault } = this.#deps;
    if (!(await findEndpoint(db, vault, key))) noSuchWebhook();
    const rows = await listDeliveries(db, key, filter, { before, limit: limit + 1 });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(toDeliveryReply), next };
  }

  async #send(key: EndpointKey, write: (tx: Handle) => Promise<DeliveryRow>) {
    const { db } = this.#deps;
    const delivery = await db.transaction(async (tx) => {
      if (!(await findEndpoint(tx, this.#deps.vault, key, { isLocked: true }))) noSuchWebhook();
      const written = await write(tx);
      await wakeEndpoints(tx, key.appId, [key.name]);
      return written;
    });
    return toDeliveryReply(delivery);
  }

  async #change(
    key: EndpointKey,
    change: (tx: Handle, existing: Endpoint) => Promise<void>,
  ): Promise<void> {
    const { db, vault, appCache } = this.#deps;
    await db.transaction(async (tx) =>
      change(tx, (await findEndpoint(tx, vault, key, { isLocked: true })) ?? noSuchWebhook()),
    );
    appCache.forget(key.appId);
  }

  async #describe(endpoint: Endpoint, role: OperatorRole): Promise<WebhookReply> {
    return toReply(endpoint, await countWaiting(this.#deps.db, endpoint.appId), role);
  }

  /** Replaces the shortened URL of a chat, as replies show it, by the stored URL. */
  async #withUrl(key: EndpointKey, body: EndpointBody): Promise<EndpointBody> {
    if (!body.url.endsWith(shortenedPath)) return body;
    const stored = (await findEndpoint(this.#deps.db, this.#deps.vault, key))?.secrets.url;
    return stored !== undefined && shortened(stored) === body.url ? { ...body, url: stored } : body;
  }

  async #requireOwner(appId: string): Promise<void> {
    if (appId !== serviceOwner) await requireApp(this.#deps, appId);
  }

  #audit(
    tx: Handle,
    { appId, name }: EndpointKey,
    { verb, ...members }: { verb: string; before?: JsonObject; after?: JsonObject },
  ): Promise<void> {
    return recordChange(tx, {
      action: `webhook.${verb}`,
      ...(appId === serviceOwner ? {} : { appId }),
      target: name,
      ...members,
    });
  }
}

function noSuchWebhook(): never {
  throw refuse('notFound', detail('noWebhook'));
}

/**
 * Throws error 403 if a caller below the role owner changes the URL. The URL of a chat contains a
 * token, and a `standard` endpoint shows its URL to operators. So only an owner makes one of a chat.
 */
function requireKeptUrl({ url, format = 'standard' }: EndpointBody, existing?: Endpoint): void {
  if (existing?.secrets.url !== url)
    throw refuse('forbidden', detail('ownerOption', { option: 'url' }));
  if (format === 'standard' && existing.format !== 'standard')
    throw refuse('forbidden', detail('ownerOption', { option: 'format' }));
}

/** Formats whose robots have a signing secret. */
const signedFormats: ReadonlySet<string> = new Set(['feishu', 'dingtalk']);

/** Throws error 400 if the URL cannot be used, or if members do not fit together. */
function checkBody({ url, events, format = 'standard', signingSecret }: EndpointBody): void {
  const refusal = urlProblem(url);
  if (refusal) throw refuse('invalidParameter', refusal);
  const [forPrograms] = format === 'standard' ? [] : typesForPrograms(events);
  if (forPrograms !== undefined)
    throw refuse('invalidParameter', detail('webhookForPrograms', { type: forPrograms, format }));
  if (signingSecret !== undefined && !signedFormats.has(format))
    throw refuse('invalidParameter', detail('webhookSigning'));
}

function urlProblem(text: string) {
  if (!URL.canParse(text)) return detail('webhookUrl');
  const { protocol, username, password } = new URL(text);
  if (username !== '' || password !== '') return detail('webhookUrlCredentials');
  if (isRefusedUrl(text)) return detail('privateAddress', { member: 'url' });
  const isAllowed = protocol === 'https:' || (protocol === 'http:' && isListedUrl(text));
  return isAllowed ? undefined : detail('webhookUrl');
}

/** Returns the settings to store. Absent members keep their values. */
function settingsOf(body: EndpointBody, existing: Endpoint | undefined) {
  const { url, events, isEnabled, format = 'standard', language, signingSecret } = body;
  const kept = existing?.format === format ? existing.secrets.signingSecret : undefined;
  const secret = signingSecret ?? kept;
  return {
    events: [...new Set(events)],
    format,
    language: language ?? null,
    isEnabled: isEnabled ?? existing?.isEnabled ?? true,
    secrets: {
      url,
      key: existing?.secrets.key ?? newSigningKey(),
      ...(secret === undefined ? {} : { signingSecret: secret }),
    },
  };
}

/** Returns what the audit shows. The URL of a chat contains a token, so only its host is shown. */
const auditedOf = ({ secrets: { url }, events, format, isEnabled }: Endpoint): JsonObject => ({
  host: new URL(url).host,
  events,
  format,
  isEnabled,
});

const shortenedPath = '/…';

/** Returns the URL of a chat without its token. */
const shortened = (url: string): string => `${new URL(url).origin}${shortenedPath}`;

/** Returns an endpoint in the form of replies. Only owners see the URL of a chat. */
function toReply(endpoint: Endpoint, backlogs: readonly Backlog[], role: OperatorRole) {
  const { name, events, format, language, isEnabled, secrets, offReason, failures } = endpoint;
  const backlog = backlogs.find((one) => one.name === name);
  const mayShow = format === 'standard' || hasRole(role, 'owner');
  const timeOf = (at: Date | null | undefined) => at?.toISOString() ?? null;
  return {
    name,
    url: mayShow ? secrets.url : shortened(secrets.url),
    events,
    format,
    language,
    isEnabled,
    offReason,
    offAt: timeOf(endpoint.offAt),
    failures,
    failingSince: timeOf(endpoint.failingSince),
    waiting: backlog?.waiting ?? 0,
    oldestWaitingAt: timeOf(backlog?.oldestAt),
    dropped: endpoint.dropped,
    droppedAt: timeOf(endpoint.droppedAt),
    previousSecretUntil: timeOf(endpoint.previousUntil),
    createdAt: endpoint.createdAt.toISOString(),
    updatedAt: endpoint.updatedAt.toISOString(),
  };
}

function toDeliveryReply(row: DeliveryRow) {
  const { type, sourceApp, state, attempts, status, reason, response } = row;
  return {
    id: deliveryId(row),
    type,
    app: sourceApp === serviceOwner ? null : sourceApp,
    state,
    attempts,
    status,
    reason,
    response,
    occurredAt: row.occurredAt.toISOString(),
    attemptedAt: row.attemptedAt?.toISOString() ?? null,
    nextAttemptAt: state === 'waiting' ? (row.nextAt?.toISOString() ?? null) : null,
  };
}
