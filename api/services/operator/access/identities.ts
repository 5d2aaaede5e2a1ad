import { equalInConstantTime, sha256 } from '../../../../shared/crypto.ts';
import {
  type ConsoleSession,
  type ConsoleToken,
  findSession,
  findToken,
  hasSession,
  hasToken,
  type SessionBounds,
  touchSession,
  touchToken,
} from '../../../../shared/db/tables/console.ts';
import { type Operator, sessionIdleMs, sessionLifeMs } from '../../../../shared/domain/admin/operator.ts';
import type { ApiDeps } from '../../deps.ts';

/** Interval in which the last use of a session is written. */
const seenEveryMs = 60_000;

/** Name of the holder of CARILLON_ADMIN_TOKEN. */
export const adminName = 'admin';

/** Length of 32 bytes in base64url. */
const secretPattern = /^[A-Za-z0-9_-]{43}$/;
export const tokenPrefix = 'carillon_';

/** Returns the caller that holds CARILLON_ADMIN_TOKEN. */
export const adminOperator = (session: Operator['session'] = null): Operator => ({
  name: adminName,
  role: 'owner',
  apps: null,
  tokenId: null,
  session,
});

/** Finds the caller of the admin API by its token or its session (protocol/admin-api.md#sessions). */
export class OperatorIdentities {
  readonly #deps: ApiDeps;
  /** Marks of CARILLON_ADMIN_TOKEN under each key of CARILLON_SECRET: its digest alone could be guessed offline. */
  readonly marks: readonly Buffer[];

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.marks = deps.vault.derivedBy(`console admin token ${deps.config.adminToken}`).map(sha256);
  }

  /** Returns the holder of a token; undefined for a wrong or expired one. */
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

  /** Returns the owner of a session by the value of its cookie; undefined for an unknown or ended one. */
  async ofCookie(cookie: string): Promise<Operator | undefined> {
    if (!secretPattern.test(cookie)) return undefined;
    const { admissionDb } = this.#deps;
    const bounds = this.bounds();
    const session = await findSession(admissionDb, sha256(cookie), { ...bounds, marks: this.marks });
    if (!session) return undefined;
    const isStale = bounds.now.getTime() - session.seenAt.getTime() >= seenEveryMs;
    if (isStale) await touchSession(admissionDb, session.id, bounds.now);
    return ownerOf(isStale ? { ...session, seenAt: bounds.now } : session);
  }

  /** Tells whether the token or session of a caller still counts. Does not count as a use. */
  async isCurrent({ session, tokenId }: Operator): Promise<boolean> {
    const { admissionDb } = this.#deps;
    const bounds = this.bounds();
    if (session) return hasSession(admissionDb, session.id, { ...bounds, marks: this.marks });
    return tokenId === null || hasToken(admissionDb, tokenId, bounds.now);
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

/** Returns the caller that holds a token. */
export const holderOf = ({ id, name, role, apps }: ConsoleToken): Operator => ({
  name,
  role,
  apps,
  tokenId: id,
  session: null,
});

/** Returns the caller of a session, with the permissions that its token has now. */
export function ownerOf(session: ConsoleSession): Operator {
  const { id, tokenId, name, role, apps } = session;
  const own = { id, expiresAt: endOf(session) };
  if (tokenId === null || name === null || role === null) return adminOperator(own);
  return { name, role, apps, tokenId, session: own };
}

/** Returns when a session ends if no further call is made. */
export function endOf({
  createdAt,
  seenAt,
  tokenExpiresAt,
}: Pick<ConsoleSession, 'createdAt' | 'seenAt' | 'tokenExpiresAt'>): Date {
  const ends = [createdAt.getTime() + sessionLifeMs, seenAt.getTime() + sessionIdleMs];
  return new Date(Math.min(...ends, tokenExpiresAt?.getTime() ?? Number.POSITIVE_INFINITY));
}
