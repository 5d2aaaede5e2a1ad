import { randomBytes } from 'node:crypto';
import { equalInConstantTime, sha256 } from '../../../../shared/crypto.ts';
import {
  type ConsoleSession,
  type ConsoleToken,
  countTokensLocked,
  deleteToken,
  findSession,
  findToken,
  hasSession,
  hasToken,
  insertToken,
  listTokens,
  type SessionBounds,
  touchSession,
  touchToken,
} from '../../../../shared/db/tables/console.ts';
import {
  type Operator,
  type OperatorRole,
  sessionIdleMs,
  sessionLifeMs,
} from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordChange } from '../audit/audit.ts';
import { toPage } from '../lists/page.ts';

/** Interval at which the last use of a session is written. */
const seenEveryMs = 60_000;

/** Name of a caller with CARILLON_ADMIN_TOKEN. */
const adminName = 'admin';

/** Length of 32 bytes in base64url. */
const secretPattern = /^[A-Za-z0-9_-]{43}$/;
const tokenPrefix = 'carillon_';

/** Returns the caller that uses CARILLON_ADMIN_TOKEN. */
const adminOperator = (session: Operator['session'] = null): Operator => ({
  name: adminName,
  role: 'owner',
  apps: null,
  tokenId: null,
  session,
});

/** Finds the caller of the admin API by token or session (protocol/admin-api.md#sessions). */
export class OperatorIdentities {
  readonly #deps: ApiDeps;
  /**
   * Digests of CARILLON_ADMIN_TOKEN under each key of CARILLON_SECRET. A plain hash of the token
   * could be guessed offline.
   */
  readonly marks: readonly Buffer[];

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.marks = deps.vault.derivedBy(`console admin token ${deps.config.adminToken}`).map(sha256);
  }

  /**
   * Returns the caller that a token belongs to. Returns undefined if the token is wrong or expired.
   */
  async ofToken(token: string): Promise<Operator | undefined> {
    if (equalInConstantTime(token, this.#deps.config.adminToken)) return adminOperator();
    const { admissionDb, clock } = this.#deps;
    if (!token.startsWith(tokenPrefix) || !secretPattern.test(token.slice(tokenPrefix.length)))
      return undefined;
    const now = new Date(clock.now());
    const found = await findToken(admissionDb, sha256(token), now);
    if (!found) return undefined;
    await touchToken(admissionDb, found, now);
    return holderOf(found);
  }

  /**
   * Returns the owner of the session with this cookie. Returns undefined if the session is unknown
   * or ended.
   */
  async ofCookie(cookie: string): Promise<Operator | undefined> {
    if (!secretPattern.test(cookie)) return undefined;
    const { admissionDb } = this.#deps;
    const bounds = this.bounds();
    const session = await findSession(admissionDb, sha256(cookie), {
      ...bounds,
      marks: this.marks,
    });
    if (!session) return undefined;
    const isStale = bounds.now.getTime() - session.seenAt.getTime() >= seenEveryMs;
    if (isStale) await touchSession(admissionDb, session.id, bounds.now);
    return ownerOf(isStale ? { ...session, seenAt: bounds.now } : session);
  }

  /**
   * Returns whether the token or session of a caller is still valid and has the same rights. The
   * rights of a person change with a login. Does not count as a use.
   */
  async isCurrent({ session, tokenId, role, apps }: Operator): Promise<boolean> {
    const { admissionDb } = this.#deps;
    const bounds = this.bounds();
    const rights = { role, apps: apps && [...apps] };
    const valid = { ...bounds, marks: this.marks };
    if (session) return hasSession(admissionDb, { id: session.id, ...rights }, valid);
    return tokenId === null || hasToken(admissionDb, { id: tokenId, ...rights }, bounds.now);
  }

  /** Returns the times within which a session is valid now. */
  bounds(): SessionBounds {
    const nowMs = this.#deps.clock.now();
    return {
      now: new Date(nowMs),
      seenAfter: new Date(nowMs - sessionIdleMs),
      createdAfter: new Date(nowMs - sessionLifeMs),
    };
  }
}

/** Returns the caller that a token belongs to. */
const holderOf = ({ id, name, role, apps }: ConsoleToken): Operator => ({
  name,
  role,
  apps,
  tokenId: id,
  session: null,
});

/** Returns the caller of a session, with the current permissions of its token. */
export function ownerOf(session: ConsoleSession): Operator {
  const { id, tokenId, name, role, apps, isOidc } = session;
  const current = { id, expiresAt: endOf(session), isOidc };
  if (tokenId === null || name === null || role === null) return adminOperator(current);
  return { name, role, apps, tokenId, session: current };
}

/** Returns when a session ends if it makes no further call. */
export function endOf({
  createdAt,
  seenAt,
  tokenExpiresAt,
  endsAt,
}: Pick<ConsoleSession, 'createdAt' | 'seenAt' | 'tokenExpiresAt' | 'endsAt'>): Date {
  const ends = [createdAt.getTime() + sessionLifeMs, seenAt.getTime() + sessionIdleMs];
  const given = [tokenExpiresAt, endsAt].flatMap((end) => end?.getTime() ?? []);
  return new Date(Math.min(...ends, ...given));
}

/** Maximum number of tokens. */
const maxTokens = 1000;

interface NewToken {
  name: string;
  role: OperatorRole;
  apps?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
}

/** Tokens of people and machines for the admin API (protocol/admin-api.md#tokens). */
export class ConsoleTokenService {
  readonly #deps: ApiDeps;
  /** Called after a token and its sessions have ended. */
  onEnded: () => void = () => undefined;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Creates a token. Only this reply contains its secret. Throws error 400 if `expiresAt` is in the
   * past, error 409 if there are too many tokens.
   */
  async create(creator: Operator, request: NewToken) {
    const { db, clock } = this.#deps;
    const now = new Date(clock.now());
    const expiresAt = request.expiresAt ?? null;
    if (expiresAt && expiresAt <= now) throw refuse('invalidParameter', detail('expiresPast'));
    const secret = tokenPrefix + randomBytes(32).toString('base64url');
    const token = await db.transaction(async (tx) => {
      if ((await countTokensLocked(tx)) >= maxTokens)
        throw refuse('conflict', detail('tooManyTokens', { n: maxTokens }));
      const { name, role, apps = null } = request;
      const values = { name, role, apps, createdBy: creator.name, createdAt: now, expiresAt };
      const inserted = await insertToken(tx, { ...values, digest: sha256(secret) });
      const after = { name, role, apps, expiresAt: expiresAt?.toISOString() ?? null };
      await recordChange(tx, { action: 'token.create', target: String(inserted.id), after });
      return inserted;
    });
    return { ...toReply(token), token: secret };
  }

  async list(page: { before: number | null; limit: number }) {
    const rows = await listTokens(this.#deps.db, { ...page, limit: page.limit + 1 });
    const { results, next } = toPage(rows, page.limit, ({ id }) => id);
    return { results: results.map(toReply), next };
  }

  /** Deletes a token. Its sessions end at once. Throws error 404 if the token does not exist. */
  async delete(id: number): Promise<void> {
    await this.#deps.db.transaction(async (tx) => {
      const token = await deleteToken(tx, id);
      if (!token) throw refuse('notFound', detail('noToken'));
      const { name, role, apps } = token;
      await recordChange(tx, {
        action: 'token.delete',
        target: String(id),
        before: { name, role, apps },
      });
    });
    this.onEnded();
  }
}

const toReply = (token: ConsoleToken) => ({ ...token, id: String(token.id) });
