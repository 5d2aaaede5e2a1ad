import { AsyncLocalStorage } from 'node:async_hooks';
import { hourMs } from '../../../../shared/clock.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  type AuditEntry,
  type AuditFilter,
  insertAudit,
  listAudit,
} from '../../../../shared/db/tables/console.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { TtlCache } from '../../../../shared/ttl-cache.ts';
import type { ApiDeps } from '../../deps.ts';
import { type PageRequest, toPage } from '../lists/page.ts';

/** Caller of the admin API during one call. */
export interface Actor extends Pick<Operator, 'name' | 'role' | 'tokenId'> {
  address: string;
  requestId: string;
  /** Called before each audit record. Throws error 429 after too many records. */
  onChange?(): void;
}

const actors = new AsyncLocalStorage<Actor>();

/** Runs a call of the admin API. Changes in it are audited under this caller. */
export const runAsActor = <T>(actor: Actor, work: () => T): T => actors.run(actor, work);

/** Returns the caller of the admin API. Returns undefined outside of its calls. */
const currentActor = (): Actor | undefined => actors.getStore();

/** Returns whether changes are audited now, because the call belongs to the admin API. */
export const isAudited = (): boolean => actors.getStore() !== undefined;

/** A change in the form of an audit record. */
export interface Change {
  /** Action in the form `<noun>.<verb>`. */
  action: string;
  appId?: string | undefined;
  target: string;
  before?: JsonObject | undefined;
  after?: JsonObject | undefined;
}

/**
 * Audits a change as part of `tx`, so that it is audited if and only if it commits. Changes outside
 * of the admin API, such as the changes of an app with its master key, are not audited. Throws
 * error 429 after too many changes of one token.
 */
export async function recordChange(tx: Handle, change: Change): Promise<void> {
  const actor = actors.getStore();
  if (!actor) return;
  actor.onChange?.();
  await insertAudit(tx, {
    appId: change.appId ?? null,
    actorName: actor.name,
    actorRole: actor.role,
    tokenId: actor.tokenId,
    address: actor.address,
    requestId: actor.requestId,
    action: change.action,
    target: change.target,
    before: change.before ?? null,
    after: change.after ?? null,
  });
}

/** Lists what callers of the admin API changed (protocol/admin-api.md#audit). */
export class AuditService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  async list({ before, limit, ...filter }: AuditFilter & PageRequest) {
    const rows = await listAudit(this.#deps.db, filter, { before, limit: limit + 1 });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(toReply), next };
  }
}

function toReply({ id, actorName, actorRole, tokenId, address, ...entry }: AuditEntry) {
  const token = tokenId === null ? null : String(tokenId);
  return { id: String(id), actor: { name: actorName, role: actorRole, token, address }, ...entry };
}

/** Time within which repeated reads by one reader are recorded once. */
const onceInMs = hourMs;
/** Maximum number of reads in memory. A new read replaces the oldest. */
const maxRemembered = 10_000;

/** Read of secrets or of personal data. */
interface Read {
  /** Action in the form `<noun>.<verb>`. */
  action: string;
  appId?: string | undefined;
  target: string;
  /** Members that a condition named. Undefined for other reads. */
  members?: Iterable<string>;
}

/**
 * Records who read secrets or queried personal data (protocol/admin-api.md#audit). Scripts and
 * pages repeat their reads, so each process records the same read of one token once an hour. This
 * prevents a flood of audit records.
 */
export class ReadAudit {
  readonly #deps: Pick<ApiDeps, 'db' | 'clock'>;
  readonly #recorded: TtlCache<string, true>;

  constructor(deps: Pick<ApiDeps, 'db' | 'clock'>) {
    this.#deps = deps;
    this.#recorded = new TtlCache({
      clock: deps.clock,
      maxAgeMs: onceInMs,
      maxEntries: maxRemembered,
    });
  }

  /** Records a read before its reply is sent. With `members`, records the members that are new. */
  async record({ action, appId, target, members }: Read): Promise<void> {
    const actor = currentActor();
    if (!actor) return;
    const keyOf = (member: string) =>
      JSON.stringify([actor.tokenId, action, appId, target, member]);
    const isNew = (member: string) => !this.#recorded.get(keyOf(member));
    const found = [...(members ?? [''])].filter(isNew).sort();
    if (found.length === 0) return;
    for (const member of found) this.#recorded.set(keyOf(member), true);
    try {
      const after = members ? { members: found } : undefined;
      await recordChange(this.#deps.db, { action, appId, target, after });
    } catch (error) {
      for (const member of found) this.#recorded.delete(keyOf(member));
      throw error;
    }
  }
}
