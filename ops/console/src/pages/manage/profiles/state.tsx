import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { ProfileDetail, PushProfile } from '../../../../../client/operations.ts';
import { useBreakers } from '../../../api/operating.ts';
import { Badge, Reason, Reasons, Time } from '../../../kit/data/values.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { BreakerBadge } from '../../operating/operating.tsx';
import { devicesText } from './profiles.tsx';

interface StateProps {
  appId: string;
  profile: PushProfile;
  /** Undefined for a viewer and until it is loaded. */
  detail: ProfileDetail | undefined;
}

/** State of a stored profile, its ids, and fingerprints of its secrets. */
export function State({ appId, profile, detail }: StateProps) {
  const { t } = useTranslation();
  const breaker = useBreakers().data?.results.find(
    (one) =>
      one.appId === appId && one.connector === profile.connector && one.profile === profile.name,
  );
  return (
    <Panel title={t('profile.state')}>
      <Facts
        rows={[
          [t('profiles.breaker'), breaker ? <BreakerBadge key="breaker" breaker={breaker} /> : '–'],
          [
            t('operating.lastFailure'),
            breaker?.lastFailure ? <Reason key="failure" {...breaker.lastFailure} /> : '–',
          ],
          ...(detail ? detailRows(detail, t) : []),
          [t('profiles.created'), <Time key="created" at={profile.createdAt} />],
          [t('profiles.updated'), <Time key="updated" at={profile.updatedAt} />],
        ]}
      />
    </Panel>
  );
}

/** Number of shown characters of a fingerprint. It is enough to compare two fingerprints. */
const fingerprintDigits = 16;

type Row = [name: string, value: ReactNode];

function detailRows(detail: ProfileDetail, t: ReturnType<typeof useTranslation>['t']): Row[] {
  const { notAfter, findings, meanings, members, secrets } = detail;
  return [
    [t('profile.devices'), devicesText(detail, t)],
    [t('profiles.ends'), notAfter ? <Time key="ends" at={notAfter} /> : t('profile.noEnd')],
    ...(findings.length > 0
      ? ([
          [
            t('overview.problem'),
            <span key="findings">
              <Badge tone="bad">{t('overview.problem')}</Badge>{' '}
              <Reasons reasons={findings} meanings={meanings} />
            </span>,
          ],
        ] satisfies Row[])
      : []),
    ...Object.entries(members).map(
      ([name, value]): Row => [
        name,
        <span key={name} translate="no">
          {shownMember(value)}
        </span>,
      ],
    ),
    ...Object.entries(secrets).map(
      ([name, { sha256 }]): Row => [
        name,
        <code key={name} title={sha256}>
          {t('profile.fingerprint', { digits: sha256.slice(0, fingerprintDigits) })}
        </code>,
      ],
    ),
  ];
}

const shownMember = (value: unknown): string =>
  Array.isArray(value)
    ? value.join(', ')
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);
