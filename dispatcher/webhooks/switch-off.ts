import type { Handle } from '../../shared/db/pool.ts';
import { insertOwnAudit } from '../../shared/db/tables/console.ts';
import { type EndpointKey, switchOff } from '../../shared/db/tables/webhooks.ts';
import { type OffReason, serviceOwner } from '../../shared/domain/webhooks/endpoint.ts';
import { enqueueMessage } from '../../shared/queue/message-jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

export type SwitchOffDeps = Pick<
  DispatcherDeps,
  'vault' | 'queue' | 'operatorMail' | 'log' | 'clock'
>;

const causes = {
  gone: 'It answered with status 410, which means that it does not exist any more.',
  failing: 'Every request to it has failed for a day.',
} as const;

/**
 * Switches an endpoint off, with an audit entry and a mail to the operator (`OPERATOR_MAIL`), in
 * `tx`. Its waiting deliveries stay and continue if it is switched on again. Does nothing if it is
 * off.
 */
export async function switchEndpointOff(
  { vault, queue, operatorMail, log }: SwitchOffDeps,
  tx: Handle,
  key: EndpointKey,
  reason: OffReason,
): Promise<void> {
  if (!(await switchOff(tx, key, reason))) return;
  const { appId, name } = key;
  log.warn({ app: appId, webhook: name, reason }, 'a webhook was switched off');
  await insertOwnAudit(tx, {
    by: '(webhooks)',
    actorRole: 'operator',
    appId: appId === serviceOwner ? null : appId,
    action: 'webhook.off',
    target: name,
    before: { isEnabled: true },
    after: { isEnabled: false, reason },
  });
  if (operatorMail === undefined) return;
  const owner = appId === serviceOwner ? 'the service' : `app ${appId}`;
  const text = [
    `The webhook ${name} of ${owner} was switched off. ${causes[reason]}`,
    'Events that happen while it is off are not sent. Deliveries that waited continue when it is switched on again.',
    `Correct the receiver, then switch it on: carillon webhooks enable ${name} ${appId === serviceOwner ? '--service' : `--app ${appId}`}`,
  ].join('\n');
  const mail = { fromName: 'Carillon', subject: `Webhook ${name} of ${owner} was switched off` };
  const message = { kind: 'mail', to: operatorMail, type: 'webhookOff', text, mail } as const;
  await enqueueMessage({ vault, queue }, tx, appId, message);
}
