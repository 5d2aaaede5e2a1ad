import type { Handle } from '../../../../shared/db/pool.ts';
import { listGatewayFailures } from '../../../../shared/db/tables/gateways/failures.ts';
import { gatewayFailureText } from '../../../../shared/domain/breaker.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Lists the gateways whose last exchange with a dispatcher failed, with the reasons. */
export async function checkGateways(db: Handle): Promise<Finding[]> {
  const failures = await listGatewayFailures(db);
  if (failures.length === 0) return [ok('gateways', 'no gateway failed when it was asked last')];
  return failures.map(({ appId, connector, profile, reason, at }) =>
    warn(
      'gateways',
      `${gatewayFailureText(connector, reason)} (profile ${profile} of app ${appId}, at ${at.toISOString()})`,
      adviceFor(reason),
    ),
  );
}

function adviceFor(reason: string): string {
  if (/^\d/.test(reason)) return 'The gateway itself fails: pushes wait and are tried again.';
  if (/^(ENOTFOUND|EAI_)/.test(reason))
    return 'Look at the DNS of this machine, and at the endpoint of the profile.';
  if (/CERT|SELF_SIGNED|ALTNAME|VERIFY|ISSUER/.test(reason))
    return 'Its certificate is not trusted: look at the endpoint and `ca` of the profile, and at the clock of this machine.';
  if (/^PROXY_/.test(reason)) return 'The proxy opens no tunnel: look at the `proxy` of the profile.';
  return 'Look at the firewall and the network of this machine, and at the endpoint of the profile.';
}
