import { randomBytes } from 'node:crypto';
import { sha256 } from '../../../../shared/crypto.ts';
import {
  type ConsoleToken,
  countTokens,
  deleteToken,
  insertToken,
  listTokens,
} from '../../../../shared/db/tables/console.ts';
import type { Operator, OperatorRole } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordChange } from '../audit/audit.ts';
import { toPage } from '../lists/page.ts';
import { tokenPrefix } from './identities.ts';

/** Most tokens at a time. */
const maxTokens = 1000;

export interface NewToken {
  name: string;
  role: OperatorRole;
  apps?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
}

/** Tokens of people and machines for the admin API (protocol/admin-api.md#tokens). */
export class ConsoleTokenService {
  readonly #deps: ApiDeps;
  /** Called after a token ended, with its sessions. */
  onEnded: () => void = () => undefined;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Creates a token; only this reply holds its secret. Throws 400 for a past end, 409 when there are too many. */
  async create(creator: Operator, request: NewToken) {
    const { db, clock } = this.#deps;
    const now = new Date(clock.now());
    const expiresAt = request.expiresAt ?? null;
    if (expiresAt && expiresAt <= now) throw refuse('invalidParameter', detail('expiresPast'));
    const secret = tokenPrefix + randomBytes(32).toString('base64url');
    const token = await db.transaction(async (tx) => {
      if ((await countTokens(tx)) >= maxTokens)
        throw refuse('conflict', detail('tooManyTokens', { n: maxTokens }));
      const { name, role, apps = null } = request;
      const values = { name, role, apps, createdBy: creator.name, createdAt: now, expiresAt };
      const inserted = await insertToken(tx, { ...values, digest: sha256(secret) });
      const after = { name, role, apps, expiresAt: expiresAt?.toISOString() ?? null };
      await recordChange(tx, { action: 'token.create', target: String(inserted.id), after });
      return inserted;
    });
    return { ...shown(token), token: secret };
  }

  async list(page: { before: number | null; limit: number }) {
    const rows = await listTokens(this.#deps.db, { ...page, limit: page.limit + 1 });
    const { results, next } = toPage(rows, page.limit, ({ id }) => id);
    return { results: results.map(shown), next };
  }

  /** Deletes a token; its sessions end at once. Throws 404 when there is no such token. */
  async delete(id: number): Promise<void> {
    await this.#deps.db.transaction(async (tx) => {
      const token = await deleteToken(tx, id);
      if (!token) throw refuse('notFound', detail('noToken'));
      const { name, role, apps } = token;
      await recordChange(tx, { action: 'token.delete', target: String(id), before: { name, role, apps } });
    });
    this.onEnded();
  }
}

const shown = (token: ConsoleToken) => ({ ...token, id: String(token.id) });
