import type { Handle } from '../../../../shared/db/pool.ts';
import { listGatewayFailures } from '../../../../shared/db/tables/gateways.ts';
import { hasAnswered } from '../../../../shared/domain/breaker.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type ReasonCode, readReason } from '../../../../shared/domain/reasons.ts';
import { type Finding, type FindingCode, found } from './finding.ts';

const name = 'gateways';

/** Lists the gateways whose last exchange with a dispatcher failed, with the reasons. */
export async function checkGateways(db: Handle): Promise<Finding[]> {
  const failures = await listGatewayFailures(db);
  if (failures.length === 0) return [found({ name, status: 'ok', code: 'gatewaysFine' })];
  return failures.map(({ appId, connector, profile, reason, at }) => {
    const params = {
      gateway: displayName(connector),
      why: reason,
      profile,
      app: appId,
      at: at.toISOString(),
    };
    return found({ name, status: 'warn', code: codeOf(reason), params });
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
