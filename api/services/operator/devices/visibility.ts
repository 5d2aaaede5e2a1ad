import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { shortenTokens } from '../../../../shared/domain/admin/shortened.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { type JsonObject, parseJson } from '../../../../shared/domain/json.ts';
import type { Viewer } from '../../../../shared/query/viewer.ts';

/** Members with tokens, as JSON text has them. */
const tokenNames = /"(deviceToken|registrationId|installationId)"/;

/** Users are not for viewers: a condition on them could reveal numbers and addresses. */
export const narrowViewer = (appId: string): Viewer => ({
  appId,
  classes: new Set(['_Installation']),
  subjects: undefined,
});

/** Throws 403 for a condition on tokens: asked often enough, it would reveal them. */
export function requireNoTokens(where: string): void {
  let value: unknown;
  try {
    value = parseJson(where);
  } catch {
    // `parseWhere` refuses it.
    return;
  }
  if (tokenNames.test(JSON.stringify(value)))
    throw refuse('forbidden', 'A condition on tokens needs the role operator; `q` finds a whole one.');
}

/** Returns a device as an operator may see it. */
export function visibleTo({ role }: Operator, document: JsonObject): JsonObject {
  return hasRole(role, 'operator') ? document : shortenTokens(document);
}
