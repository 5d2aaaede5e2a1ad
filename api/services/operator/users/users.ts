import { countRows, type Selection } from '../../../../shared/db/tables/selection.ts';
import { findUser, selectUsers } from '../../../../shared/db/tables/users.ts';
import { shortened, shortenPersonal } from '../../../../shared/domain/admin/masking.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { parsePhone } from '../../../../shared/domain/messages/phone.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { identitiesOf } from '../../../../shared/domain/users/auth-data.ts';
import { type User, userDocument } from '../../../../shared/domain/users/user.ts';
import { mapInTicks } from '../../../../shared/event-loop.ts';
import { parseWhere } from '../../../../shared/query/parse/where.ts';
import { userClass } from '../../../../shared/query/schema.ts';
import { Params } from '../../../../shared/query/sql/params.ts';
import { compileWhere } from '../../../../shared/query/sql/where.ts';
import { noSuchUser } from '../../accounts/account-control.ts';
import type { Accounts } from '../../accounts/accounts.ts';
import { isObjectId } from '../../accounts/caller.ts';
import type { ApiDeps } from '../../deps.ts';
import { type ConditionViewer, operatorViewer } from '../access/member-rights.ts';
import { requireApp } from '../apps.ts';
import type { ReadAudit } from '../audit/audit.ts';
import { cappedRows, countOfRows, type PageRequest, toPage } from '../lists/page.ts';

export interface UserListRequest extends PageRequest {
  /**
   * An objectId, name, address or number to search for. Callers with the role viewer may only use
   * an objectId.
   */
  q?: string | undefined;
  /** Condition as JSON text. */
  where?: string | undefined;
  /** Maximum number of matches to count. 0 counts none. */
  maxCount: number;
}

type AccountParts = Pick<Accounts, 'users' | 'locks'>;

/** Finds, shows and changes users for operators (protocol/admin-api.md#users). */
export class UserAdminService {
  readonly #deps: ApiDeps;
  readonly #accounts: AccountParts;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, accounts: AccountParts, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
    this.#accounts = accounts;
  }

  /**
   * Lists users, newest first. Throws error 404 if the app does not exist, error 403 if a viewer
   * sends a condition, error 102 or 105, error 116 if the reply is too large, error 124 after a
   * timeout.
   */
  async list(operator: Operator, appId: string, request: UserListRequest) {
    const app = await requireApp(this.#deps, appId);
    const max = request.maxCount;
    const viewer = operatorViewer(operator, appId);
    const { rows, count } = await this.#deps.queries.readPrepared({ app, isMaster: true }, () => {
      const selection = selectionOf(operator, viewer, request);
      const all = cappedRows(
        'app_user',
        selectionOf(operator, viewer, { ...request, before: null }),
        max,
      );
      return async (tx) => ({
        rows: await selectUsers(tx, selection),
        count: max > 0 ? await countRows(tx, 'app_user', all) : undefined,
      });
    });
    await this.#reads.record({
      action: 'user.list',
      appId,
      target: appId,
      members: viewer.personal,
    });
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    const documents = await mapInTicks(results, (user) => documentFor(operator, user));
    return { results: documents, next, ...(count === undefined ? {} : countOfRows(count, max)) };
  }

  /**
   * Returns a user with third-party accounts and lock state. Throws error 404 if the user does not
   * exist.
   */
  async get(operator: Operator, appId: string, objectId: string) {
    const app = await requireApp(this.#deps, appId);
    const user = isObjectId(objectId)
      ? await findUser(this.#deps.db, appId, { key: { objectId } })
      : undefined;
    if (!user) throw noSuchUser();
    const { own, claims } = identitiesOf(user.authData ?? {});
    const isWhole = hasRole(operator.role, 'operator');
    return {
      user: documentFor(operator, user),
      identities: [...own, ...claims].map(({ platform, uid }) => ({
        platform,
        uid: isWhole ? uid : shortened(uid),
      })),
      hasPassword: user.passwordHash !== null,
      lock: await this.#accounts.locks.stateOf(app, user),
    };
  }

  /**
   * Changes members, as PUT with the master key does, including the app's hooks. Throws error 404
   * if the user does not exist, and as `UserService.update`.
   */
  async update(
    operator: Operator,
    appId: string,
    { objectId, body }: { objectId: string; body: JsonObject },
  ) {
    const caller = await this.#callerFor(appId, objectId);
    await this.#accounts.users.update(caller, objectId, { body, where: undefined });
    return this.get(operator, appId, objectId);
  }

  /**
   * Deletes a user and its session, including the app's hooks. Throws error 404 if the user does
   * not exist, and as `UserService.delete`.
   */
  async delete(appId: string, objectId: string): Promise<void> {
    const caller = await this.#callerFor(appId, objectId);
    await this.#accounts.users.delete(caller, objectId, { body: {}, where: undefined });
  }

  async #callerFor(appId: string, objectId: string) {
    const app = await requireApp(this.#deps, appId);
    const isKnown =
      isObjectId(objectId) &&
      (await findUser(this.#deps.db, appId, { key: { objectId } })) !== undefined;
    if (!isKnown) throw noSuchUser();
    return { app, isMaster: true, session: undefined, remoteAddress: '' };
  }
}

function selectionOf(
  { role }: Operator,
  viewer: ConditionViewer,
  request: UserListRequest,
): Selection {
  const { q, where, before, limit } = request;
  const isOperator = hasRole(role, 'operator');
  if (!isOperator && where !== undefined) throw refuse('forbidden', detail('usersNeedOperator'));
  const params = new Params([viewer.appId]);
  const parsed = parseWhere(where, userClass, viewer);
  const conditions = [`(${compileWhere(parsed, userClass, params)})`];
  if (q !== undefined) conditions.push(idCondition(q, params, isOperator));
  if (before !== null) conditions.push(`id < ${params.add(before)}`);
  const { values } = params;
  const condition = conditions.join(' AND ');
  return {
    condition,
    orderBy: 'id DESC',
    values,
    conditionValues: values.length,
    limit: limit + 1,
    skip: 0,
  };
}

function idCondition(q: string, params: Params, isOperator: boolean): string {
  const value = params.add(q);
  if (!isOperator) return `object_id = ${value}`;
  const number = params.add(parsePhone(q)?.e164 ?? q);
  return `(object_id = ${value} OR username = ${value} OR email = ${value} OR mobile_phone_number = ${number})`;
}

/**
 * Returns a user without secrets of third-party accounts. Personal data is shortened for viewers.
 */
function documentFor({ role }: Operator, user: User): JsonObject {
  const isOperator = hasRole(role, 'operator');
  const document = userDocument(user, { isOwn: isOperator, hasAcl: 'stored' });
  return isOperator ? document : shortenPersonal(document);
}
