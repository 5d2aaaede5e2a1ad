import type { z } from 'zod';
import { issueText } from '../shared/domain/errors/issue-text.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/domain/json.ts';
import { type ConnectorId, profileConnectorIds } from '../shared/domain/labels.ts';
import { reasonAs } from '../shared/domain/reasons.ts';
import { apns } from './apns/index.ts';
import { channel } from './channel/index.ts';
import type { Connector, CredentialReport } from './contract/connector.ts';
import { type CredentialGuide, commonMembers, foreignFile } from './contract/guide.ts';
import { fcm, vendorG } from './fcm/index.ts';
import { guideOf } from './guides.ts';
import { parseObject } from './kit/values.ts';
import { honor } from './vendors/honor/index.ts';
import { huawei } from './vendors/huawei/index.ts';
import { meizu } from './vendors/meizu/index.ts';
import { oppo } from './vendors/oppo/index.ts';
import { vivo } from './vendors/vivo/index.ts';
import { xiaomi } from './vendors/xiaomi/index.ts';
import { webPush } from './webpush/index.ts';

/** All connectors. A new vendor needs one line here (develop/architecture.md#connectors). */
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
  [webPush.id, webPush],
]);

/** Schemas of credentials by connector id. The device channel has no credentials. */
const schemas: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ...[...connectors.values()]
    .filter(({ id }) => profileConnectorIds.some((known) => known === id))
    .map(({ id, credentials }) => [id, credentials] as const),
]);

/**
 * Returns the schema for the credentials of a connector's profiles
 * (protocol/admin-api.md#credentials-of-a-push-profile). Returns undefined if the connector has no
 * profiles. Error messages of the schema quote no secret.
 */
export function credentialsOf(connectorId: ConnectorId): z.ZodType | undefined {
  return schemas.get(connectorId);
}

/**
 * Credentials in the form to store, or an error that names the wrong member and the expected value.
 */
export type CheckedCredentials = { ok: true; credentials: unknown } | { ok: false; error: string };

/**
 * Checks credentials, which are the members of a profile or the content of the vendor's own file.
 * The error names the member, the expected value and, if known, the cause. It quotes no value.
 */
export function checkCredentials(connectorId: ConnectorId, sent: unknown): CheckedCredentials {
  const schema = credentialsOf(connectorId);
  if (!schema) return { ok: false, error: `${connectorId} takes no credentials` };
  const {
    error,
    lacks,
    members = sent,
  } = isJsonObject(sent) ? fromFiles(guideOf(connectorId), sent) : {};
  if (error !== undefined) return { ok: false, error };
  const result = schema.safeParse(members, { error: issueText });
  if (result.success) {
    const swapped = swapError(guideOf(connectorId), result.data);
    return swapped === null
      ? { ok: true, credentials: result.data }
      : { ok: false, error: swapped };
  }
  const issue = result.error.issues[0];
  const text = issue ? describeIssue(issue) : 'the credentials are not as expected';
  return { ok: false, error: lacks === undefined ? text : `${text}; ${lacks}` };
}

/**
 * Extracts members from the vendor's files: the whole value may be a file, or single members may
 * contain one, also as JSON text.
 */
function fromFiles(
  guide: CredentialGuide | undefined,
  sent: JsonObject,
): { members?: JsonObject; lacks?: string; error?: string } {
  const whole = guide?.fromFile?.(sent);
  if (whole)
    return 'error' in whole
      ? whole
      : { ...whole, members: { ...ownMembers(guide, sent), ...whole.members } };
  const other = foreignFile(sent);
  if (other !== undefined) return { error: `this is ${other}; this gateway takes no such file` };
  const members = { ...sent };
  for (const name of guide?.fileMembers ?? []) {
    const value = sent[name];
    const document = typeof value === 'string' ? parseObject(value) : value;
    if (!isJsonObject(document)) continue;
    members[name] = document;
    const file = guide?.fromFile?.(document);
    if (file && 'error' in file)
      return { error: `${name} must be the content of another file: ${file.error}` };
    if (file && file.members[name] === undefined)
      return { error: `${name} must be another file than ${file.file}` };
  }
  return { members };
}

/** Returns the members of a profile that were added to a file. */
function ownMembers(guide: CredentialGuide | undefined, sent: JsonObject): JsonObject {
  const known = { ...guide?.members, ...commonMembers };
  return Object.fromEntries(Object.entries(sent).filter(([name]) => Object.hasOwn(known, name)));
}

/**
 * Returns an error if two members seem to be swapped: an id of digits is in the wrong member.
 * Returns null otherwise.
 */
function swapError(guide: CredentialGuide | undefined, credentials: unknown): string | null {
  const id = guide?.numericId;
  if (id === undefined || !isJsonObject(credentials)) return null;
  const isId = (value: Json | undefined) => typeof value === 'string' && /^\d{5,}$/.test(value);
  const other = Object.keys(guide?.members ?? {}).find(
    (name) => name !== id && isId(credentials[name]),
  );
  const isSwapped =
    other !== undefined && typeof credentials[id] === 'string' && !/^\d+$/.test(credentials[id]);
  return isSwapped ? `${id} must be digits only: it seems to be swapped with ${other}` : null;
}

/**
 * Returns kind, expiry and problems of stored credentials. `nowMs` is in epoch milliseconds. Never
 * throws: if the credentials do not match their schema, this is reported as a problem.
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
  return {
    kind: 'invalid',
    expiresAtMs: null,
    problems: [reasonAs(`${problem}: put the profile again.`, 'credentialsUnfit')],
  };
}

/**
 * Joins the path of a member and the message about it. The message may begin with the member's
 * name.
 */
function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join('.');
  const name = String(issue.path.at(-1) ?? '');
  if (path === '') return issue.message;
  if (issue.message.startsWith(`${name} `)) return `${path}${issue.message.slice(name.length)}`;
  return /^(must|is) /.test(issue.message)
    ? `${path} ${issue.message}`
    : `${path}: ${issue.message}`;
}
