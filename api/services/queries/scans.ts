import { selectInstallations } from '../../../shared/db/tables/installations.ts';
import { selectRoles } from '../../../shared/db/tables/roles.ts';
import { selectUsers } from '../../../shared/db/tables/users.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { installationDocument } from '../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { roleDocument } from '../../../shared/domain/roles/role.ts';
import { userDocument } from '../../../shared/domain/users/user.ts';
import { project } from '../../../shared/query/list/keys.ts';
import { compileScan, cursorAfter, parseScan } from '../../../shared/query/list/scan.ts';
import { classes, roleClass, userClass } from '../../../shared/query/schema.ts';
import { tokenOpenerFor } from '../accounts/caller.ts';
import type { ApiDeps } from '../deps.ts';
import type { Caller } from '../installations/installations.ts';

/**
 * Reads all users, installations or roles of an app page by page. Concurrent writes do not shift
 * the pages.
 */
export class ScanService {
  readonly #deps: Pick<ApiDeps, 'queries' | 'clock' | 'vault'>;

  constructor(deps: Pick<ApiDeps, 'queries' | 'clock' | 'vault'>) {
    this.#deps = deps;
  }

  /**
   * Returns a page and the cursor of the next page, or null after the last page
   * (protocol/queries.md#scan). Throws error 101 if the class is unknown, error 116 if the reply is
   * too large, error 124 after a timeout, and as `parseScan`.
   */
  async scan(
    caller: Caller,
    className: string,
    query: Record<string, unknown>,
  ): Promise<{ results: JsonObject[]; cursor: string | null }> {
    const { appId } = caller.app;
    const cls = classes.get(className);
    if (!cls) throw refuse('objectNotFound', "Class or object doesn't exists.");
    const nowMs = this.#deps.clock.now();
    const scan = parseScan(query, cls, { appId, nowMs });
    const selection = compileScan(scan, cls, appId);
    const rows = await this.#deps.queries.read(caller, async (tx) => {
      if (cls === roleClass)
        return (await selectRoles(tx, selection)).map((row) => ({
          row,
          document: roleDocument(row, { hasAcl: false }),
        }));
      if (cls !== userClass)
        return (await selectInstallations(tx, selection)).map((row) => ({
          row,
          document: installationDocument(row, { hasAcl: false }),
        }));
      const users = await selectUsers(tx, selection);
      const open = tokenOpenerFor(caller, this.#deps.vault);
      return users.map((row) => ({ row, document: userDocument(row, { isOwn: true, open }) }));
    });
    const page = rows.slice(0, scan.limit);
    const last = rows.length > scan.limit ? page.at(-1) : undefined;
    return {
      results: page.map(({ document }) => project(document, scan.keys, cls)),
      cursor: last ? cursorAfter(last.row, scan, nowMs) : null,
    };
  }
}
