import type { Handle } from '../../../../shared/db/pool.ts';
import { listGatewayFailures } from '../../../../shared/db/tables/gateways.ts';
import type { FindingCode } from '../../../../shared/domain/admin/doctor-texts.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Finding, found } from './finding.ts';

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

function codeOf(reason: string): FindingCode {
  if (/^\d/.test(reason)) return 'gatewayFails';
  if (/^(ENOTFOUND|EAI_)/.test(reason)) return 'gatewayWithoutName';
  if (/CERT|SELF_SIGNED|ALTNAME|VERIFY|ISSUER/.test(reason)) return 'gatewayUntrusted';
  return /^PROXY_/.test(reason) ? 'gatewayWithoutTunnel' : 'gatewayUnreached';
}
