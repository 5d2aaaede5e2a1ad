import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { listApps, listFreezes } from '../../../../shared/db/tables/apps.ts';
import { listGatewayFailures } from '../../../../shared/db/tables/gateways.ts';
import { listKeptTokens } from '../../../../shared/db/tables/invalid-tokens.ts';
import { listWaitingApprovals } from '../../../../shared/db/tables/scheduled-pushes.ts';
import { listPlatforms } from '../../../../shared/db/tables/users.ts';
import { listTroubled } from '../../../../shared/db/tables/webhooks.ts';
import { hasAnswered } from '../../../../shared/domain/breaker.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type ReasonCode, readReason } from '../../../../shared/domain/reasons.ts';
import type { Code } from '../../../../shared/domain/texts/catalogue.ts';
import { replyText, type TextParams, writeFinding } from '../../../../shared/domain/texts/texts.ts';
import { anonymous } from '../../../../shared/domain/users/auth-data.ts';
import { isAlwaysChecked } from '../../../../shared/domain/users/auth-platforms.ts';
import { serviceOwner } from '../../../../shared/domain/webhooks/endpoint.ts';

/** Code of a finding. */
type FindingCode = Code<'doctor'>;

/** Result of one check. */
export interface Finding {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  /** Current state. */
  detail: string;
  /** Action to take. Empty if the check succeeded. */
  advice: string;
  /** Code and parameters of the text. */
  code: FindingCode;
  params: TextParams;
}

interface CodedFinding {
  name: string;
  status: Finding['status'];
  code: FindingCode;
  params?: TextParams;
}

/** Returns a finding with its text in English. */
export const found = ({ name, status, code, params = {} }: CodedFinding): Finding => ({
  name,
  status,
  ...writeFinding({ code, params }, 'en'),
  code,
  params,
});

/** Returns a finding in the form of documents. */
export const shownFinding = (finding: Finding) => ({ ...finding, ...replyText(finding) });

/**
 * Returns the message of the innermost error, which has the most detail (for example, a refused
 * connection).
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}

/**
 * Runs checks one after another. If a check fails, this becomes a finding, and the other checks
 * still run.
 */
export async function runEach(checks: readonly (() => Promise<Finding[]>)[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const check of checks) findings.push(...(await check().catch(interrupted)));
  return findings;
}

/** Returns the finding about a check that failed. */
export const interrupted = (error: unknown): Finding[] => [
  found({
    name: 'database',
    status: 'warn',
    code: 'interrupted',
    params: { why: reasonOf(error) },
  }),
];

/** Maximum number of freezes that are reported. */
const maxFreezes = 20;

/**
 * Reports whether the whole service or apps are frozen. Their pushes wait until somebody releases
 * them.
 */
export async function checkFreezes(db: Handle): Promise<Finding[]> {
  const freezes = await listFreezes(db);
  return freezes.slice(0, maxFreezes).map(({ appId, since, reason, by }) =>
    found({
      name: 'freeze',
      status: 'warn',
      code: appId === null ? 'serviceFrozen' : 'appFrozen',
      params: { app: appId ?? '', since: since.toISOString(), by, reason: reason || '-' },
    }),
  );
}

/** Maximum number of apps that are reported. */
const maxApprovals = 20;

/**
 * Reports apps with pushes that wait for the approval of a second person. Such pushes can expire.
 */
export async function checkApprovals(db: Handle): Promise<Finding[]> {
  const waiting = await listWaitingApprovals(db, maxApprovals);
  return waiting.map(({ appId, pushes, since }) =>
    found({
      name: 'approval',
      status: 'warn',
      code: 'approvalsWait',
      params: { app: appId, n: pushes, since: since.toISOString() },
    }),
  );
}

/** Lists the gateways whose last exchange with a dispatcher failed, with the reasons. */
export async function checkGateways(db: Handle): Promise<Finding[]> {
  const failures = await listGatewayFailures(db);
  if (failures.length === 0)
    return [found({ name: 'gateways', status: 'ok', code: 'gatewaysFine' })];
  return failures.map(({ appId, connector, profile, reason, at }) => {
    const params = {
      gateway: displayName(connector),
      why: reason,
      profile,
      app: appId,
      at: at.toISOString(),
    };
    return found({ name: 'gateways', status: 'warn', code: codeOf(reason), params });
  });
}

const findings: ReadonlyMap<string, FindingCode> = new Map<ReasonCode, FindingCode>([
  ['ENOTFOUND', 'gatewayWithoutName'],
  ['EAI_AGAIN', 'gatewayWithoutName'],
  ['certificateUntrusted', 'gatewayUntrusted'],
  ['proxyRefused', 'gatewayWithoutTunnel'],
]);

function codeOf(reason: string): FindingCode {
  if (hasAnswered(reason)) return 'gatewayFails';
  return findings.get(readReason(reason).code) ?? 'gatewayUnreached';
}

/** Maximum number of pushes that are reported. */
const maxKeptTokens = 20;

/**
 * Reports pushes of the last day that found so many invalid tokens that their devices were kept.
 */
export async function checkInvalidTokens(db: Handle): Promise<Finding[]> {
  const kept = await listKeptTokens(db, maxKeptTokens);
  return kept.map(
    ({ appId, objectId, connector, profile, answers, invalid, kept: devices, reason }) =>
      found({
        name: 'tokens',
        status: 'warn',
        code: 'tokensKept',
        params: {
          app: appId,
          push: objectId,
          gateway: displayName(connector),
          profile,
          answers,
          invalid,
          devices,
          reason,
        },
      }),
  );
}

/** Maximum number of webhooks that are reported. */
const maxWebhooks = 20;

/** Reports webhooks that the service switched off, and webhooks that dropped events within a day. */
export async function checkWebhooks(db: Handle): Promise<Finding[]> {
  const troubled = await listTroubled(db, null, maxWebhooks);
  return troubled.map(({ appId, name: webhook, offReason, at }) =>
    found({
      name: 'webhooks',
      status: 'warn',
      code:
        offReason === 'gone'
          ? 'webhookGone'
          : offReason === 'failing'
            ? 'webhookFailing'
            : 'webhookFull',
      params: { app: appId === serviceOwner ? null : appId, webhook, at: at.toISOString() },
    }),
  );
}

/** Maximum number of names in a line. */
const maxNames = 5;

/**
 * Warns of apps whose users have accounts on third-party platforms that are not verified. Any
 * caller that knows the id of such an account can sign in as its user. Does not find platforms
 * without users. Throws if an app cannot be decrypted.
 */
export async function checkPlatforms({
  db,
  vault,
  maxApps,
}: {
  db: Handle;
  vault: Vault;
  maxApps?: number;
}): Promise<Finding[]> {
  const findings: Finding[] = [];
  const apps = (await listApps(db, vault)).slice(0, maxApps);
  for (const { appId, options } of apps) {
    if (options.checkedPlatformsOnly) continue;
    const unchecked = (await listPlatforms(db, appId)).filter(
      (platform) => isUncheckable(platform) && !Object.hasOwn(options.authPlatforms, platform),
    );
    if (unchecked.length === 0) continue;
    const names =
      unchecked.slice(0, maxNames).join(', ') + (unchecked.length > maxNames ? ', …' : '');
    const params = { app: appId, platforms: names };
    findings.push(found({ name: 'platforms', status: 'warn', code: 'uncheckedPlatforms', params }));
  }
  if (findings.length > 0) return findings;
  return [
    found({
      name: 'platforms',
      status: 'ok',
      code: 'platformsFine',
      params: { apps: apps.length },
    }),
  ];
}

/**
 * Returns whether users can log in by this platform without verification. This excludes UnionIDs,
 * anonymous users and platforms with identity tokens.
 */
const isUncheckable = (platform: string): boolean =>
  !platform.startsWith('_') && platform !== anonymous && !isAlwaysChecked(platform);
