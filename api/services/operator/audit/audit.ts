import { type AuditEntry, type AuditFilter, listAudit } from '../../../../shared/db/tables/console.ts';
import type { ApiDeps } from '../../deps.ts';
import { type PageRequest, toPage } from '../lists/page.ts';

/** Lists what callers of the admin API changed (protocol/admin-api.md#audit). */
export class AuditService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  async list({ before, limit, ...filter }: AuditFilter & PageRequest) {
    const rows = await listAudit(this.#deps.db, filter, { before, limit: limit + 1 });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(shown), next };
  }
}

function shown({ id, actorName, actorRole, tokenId, address, ...entry }: AuditEntry) {
  const token = tokenId === null ? null : String(tokenId);
  return { id: String(id), actor: { name: actorName, role: actorRole, token, address }, ...entry };
}
