import { Link } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { Time } from '../../kit/data/values.tsx';
import { Facts, Panel } from '../../kit/panel.tsx';
import { formatCount } from '../../text/format.ts';
import { Languages, VariableCounts } from '../compose/before/dry-run.tsx';
import { ShownMessage } from '../pushes/shown-message.tsx';
import { Sender, StartTime, sourceOf } from '../pushes/shown-push.tsx';

/** Message of a push as it was accepted. */
export function Content({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const pace =
    push.flowControl === null
      ? t('push.unlimited')
      : t('push.pace', { rate: formatCount(push.flowControl) });
  const recurring: [string, ReactNode][] = push.recurring
    ? [
        [
          t('recurring.one'),
          <RecurringLink key="recurring" appId={appId} name={push.recurring.name} />,
        ],
      ]
    : [];
  return (
    <>
      <Panel title={t('push.message')}>
        <ShownMessage push={push} />
      </Panel>
      {push.languages !== undefined && push.languages.length > 0 && (
        <Panel title={t('compose.languages')}>
          <Languages languages={push.languages} />
        </Panel>
      )}
      {push.variables && (
        <Panel title={t('compose.variables')}>
          <VariableCounts variables={push.variables} />
        </Panel>
      )}
      <Panel title={t('push.settings')}>
        <Facts
          rows={[
            [t('push.id'), <code key="id">{push.objectId}</code>],
            [t('push.notificationId'), <code key="nid">{push.notificationId}</code>],
            [t('push.environment'), t(`compose.${push.prod}`)],
            [t('push.flowControl'), pace],
            [t('push.time'), <StartTime key="time" push={push} />],
            ...settingsOf(push, t),
            [t('push.expires'), <Time key="expires" at={push.expiresAt} />],
            [t('push.sentBy'), <Sender key="by" push={push} />],
            [t('pushes.source'), sourceOf(push, t)],
            ...recurring,
          ]}
        />
      </Panel>
    </>
  );
}

/** Returns the settings of the push that override options of the app. */
function settingsOf({ request, ...push }: PushDetail, t: TFunction): [string, ReactNode][] {
  const { local, quietHours, deviceCap, kind, ...others } = request;
  const { topic, teamId, notificationChannel } = others;
  const zone = isRecord(local) ? local.zone : undefined;
  const named: [string, unknown][] = [
    [t('compose.campaign'), push.campaign],
    [t('push.defaultZone'), zone],
    [t('compose.quietHours'), quietHours],
    [t('compose.deviceCap'), deviceCap],
    [t('compose.pushKind'), kind === 'transactional' ? t('compose.transactional') : undefined],
    [t('push.topic'), topic],
    [t('push.team'), teamId],
    [t('compose.notificationChannel'), notificationChannel],
  ];
  const own = named.flatMap(([name, value]): [string, ReactNode][] =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
  );
  if (push.localTime === null) return own;
  return [[t('push.firstZone'), <Time key="first" at={push['push-time']} />], ...own];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Link to the recurring push that created this push. */
function RecurringLink({ appId, name }: { appId: string; name: string }) {
  return (
    <Link to="/apps/$appId/pushes/recurring" params={{ appId }} translate="no">
      {name}
    </Link>
  );
}
