import { AsyncLocalStorage } from 'node:async_hooks';
import type { Handle } from '../../../../shared/db/pool.ts';
import { insertAudit } from '../../../../shared/db/tables/console.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';

/** Caller of the admin API during one call. */
export interface Actor extends Pick<Operator, 'name' | 'role' | 'tokenId'> {
  address: string;
  requestId: string;
  /** Called before each entry of the audit. Throws 429 after too many. */
  onChange?(): void;
}

const actors = new AsyncLocalStorage<Actor>();

/** Runs a call of the admin API: changes within it are audited under this caller. */
export const runAsActor = <T>(actor: Actor, work: () => T): T => actors.run(actor, work);

/** Returns the caller of the admin API; undefined outside of its calls. */
export const currentActor = (): Actor | undefined => actors.getStore();

/** Tells whether changes are audited now: the call is of the admin API. */
export const isAudited = (): boolean => actors.getStore() !== undefined;

/** A change as the audit shows it. */
export interface Change {
  /** `<noun>.<verb>`. */
  action: string;
  appId?: string | undefined;
  target: string;
  before?: JsonObject | undefined;
  after?: JsonObject | undefined;
}

/**
 * Writes a change within its own transaction, so that it is audited if and only if it commits.
 * Changes outside of the admin API, such as those of an app with its master key, are not audited.
 * Throws 429 after too many changes of one token.
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
