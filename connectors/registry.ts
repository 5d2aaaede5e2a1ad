import type { z } from 'zod';
import { issueText } from '../shared/domain/errors/issue-text.ts';
import { type ConnectorId, profileConnectorIds } from '../shared/domain/labels.ts';
import { apns } from './apns/index.ts';
import { channel } from './channel/index.ts';
import type { Connector, CredentialReport } from './contract/connector.ts';
import type { CredentialGuide } from './contract/guide.ts';
import { fcm, vendorG } from './fcm/index.ts';
import { honor } from './vendors/honor/index.ts';
import { huawei } from './vendors/huawei/index.ts';
import { meizu } from './vendors/meizu/index.ts';
import { oppo } from './vendors/oppo/index.ts';
import { vivo } from './vendors/vivo/index.ts';
import { xiaomi } from './vendors/xiaomi/index.ts';

/** All connectors. A new vendor adds one line (develop/architecture.md#connectors). */
export const connectors: ReadonlyMap<ConnectorId, Connector> = new Map<ConnectorId, Connector>([
  [apns.id, apns],
  [fcm.id, fcm],
  [vendorG.id, vendorG],
  [huawei.id, huawei],
  [xiaomi.id, xiaomi],
  [meizu.id, meizu],
  [oppo.id, oppo],
  [vivo.id, vivo],
  [honor.id, honor],
  [channel.id, channel],
]);

/** Credential schemas; the own channel takes no credentials. */
const schemas: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ...[...connectors.values()]
    .filter(({ id }) => profileConnectorIds.some((known) => known === id))
    .map(({ id, credentials }) => [id, credentials] as const),
]);

/**
 * Returns the schema of a profile's credentials (protocol/admin-api.md#credentials-of-a-push-profile); undefined if the
 * connector takes no profile. Its messages quote no secret.
 */
export function credentialsOf(connectorId: ConnectorId): z.ZodType | undefined {
  return schemas.get(connectorId);
}

/** Returns help on the credentials of a connector; undefined if it takes none. */
export const guideOf = (connectorId: ConnectorId): CredentialGuide | undefined =>
  connectors.get(connectorId)?.guide;

/** Credentials as stored, or an error that names the wrong member and the expected value. */
export type CheckedCredentials = { ok: true; credentials: unknown } | { ok: false; error: string };

/** Checks credentials. The error quotes names of members, never their values. */
export function checkCredentials(connectorId: ConnectorId, sent: unknown): CheckedCredentials {
  const schema = credentialsOf(connectorId);
  if (!schema) return { ok: false, error: `${connectorId} takes no credentials` };
  const result = schema.safeParse(sent, { error: issueText });
  if (result.success) return { ok: true, credentials: result.data };
  const issue = result.error.issues[0];
  return { ok: false, error: issue ? describeIssue(issue) : 'the credentials are not as expected' };
}

/**
 * Reports kind, expiry and problems of stored credentials. `nowMs` in epoch milliseconds. Never throws: credentials that do
 * not match their schema are a problem.
 */
export function inspectCredentials(
  connectorId: ConnectorId,
  credentials: unknown,
  nowMs: number,
): CredentialReport {
  const connector = connectors.get(connectorId);
  const checked = checkCredentials(connectorId, credentials);
  if (connector && checked.ok) return connector.inspect(checked.credentials, nowMs);
  const problem = checked.ok ? `${connectorId} sends nothing` : checked.error;
  return { kind: 'invalid', expiresAtMs: null, problems: [`${problem}: put the profile again.`] };
}

/** Joins the name of a member and the message about it. */
function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join('.');
  const isNamed = path === '' || issue.message.startsWith(String(issue.path.at(-1)));
  return isNamed ? issue.message : `${path}: ${issue.message}`;
}
