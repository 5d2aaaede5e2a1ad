import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { ProfileCheck, ProfileDetail, PushProfile } from '../../../../../client/operations.ts';
import { useBreakers } from '../../../api/operating.ts';
import {
  type ProfileId,
  useMeta,
  useProfile,
  useProfileChange,
  useProfileCheck,
  useProfiles,
} from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Badge, Marked, Reason, Reasons, Time } from '../../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName, useRemedyText } from '../../../text/explanation.ts';
import { formatCount, formatDuration } from '../../../text/format.ts';
import { BreakerBadge } from '../../operating/operating.tsx';
import { CredentialsForm } from './credentials-form.tsx';
import styles from './profiles.module.css';
import { devicesText } from './profiles.tsx';
import { Rotation } from './rotation.tsx';

/** Button that checks whether the gateway accepts the credentials. No message is sent. */
export function Check({ id }: { id: ProfileId }) {
  const { t } = useTranslation();
  const check = useProfileCheck(id);
  return (
    <Panel
      title={t('profile.check')}
      side={
        <Button isBusy={check.isPending} onClick={() => check.mutate()}>
          {t('profile.checkNow')}
        </Button>
      }
    >
      <div aria-live="polite" className={styles.check}>
        {check.error ? (
          <Failure error={check.error} />
        ) : check.isPending ? (
          t('profile.checking')
        ) : check.data ? (
          <Answer answer={check.data} />
        ) : (
          <span className={styles.source}>{t('profile.checkHint')}</span>
        )}
      </div>
    </Panel>
  );
}

function Answer({
  answer: { ok, gave, tookMs, sentence, meaning, remedy },
}: {
  answer: ProfileCheck;
}) {
  const { t } = useTranslation();
  const remedyText = useRemedyText();
  return (
    <>
      <p>
        <Badge tone={ok ? 'good' : 'bad'}>
          {t(ok ? 'profileCheck.ok' : 'profileCheck.failed')}
        </Badge>{' '}
        {ok ? (
          t(`profileCheck.${gave ?? 'connection'}`)
        ) : (
          <Reason reason={sentence} meaning={meaning} />
        )}{' '}
        <span className={styles.source}>{formatDuration(tookMs)}</span>
      </p>
      {remedy && (
        <p>
          <Marked text={remedyText(remedy)} />
        </p>
      )}
    </>
  );
}

const route = getRouteApi('/apps/$appId/profiles/$connector/$name');

/**
 * Page of a push profile: its state and the form for its credentials. For a new profile, only the
 * form.
 */
export function Profile() {
  const id = route.useParams();
  const { appId, connector, name } = id;
  const profiles = useProfiles(appId);
  const meta = useMeta();
  const mayChange = useMay('operator');
  const { t } = useTranslation();
  const described = meta.data?.connectors.find((one) => one.id === connector);
  const stored = profiles.data?.results.find(
    (one) => one.connector === connector && one.name === name,
  );
  const isStored = stored !== undefined;
  const detail = useProfile(id, isStored && mayChange);
  const isReady = profiles.data !== undefined && meta.data !== undefined;
  const error = profiles.error ?? meta.error;
  return (
    <>
      <PageHeader
        title={`${connectorName(connector)} · ${name}`}
        side={isStored && mayChange && <Delete id={id} devices={detail.data?.devices} />}
      />
      {error && !isReady ? (
        <Failure error={error} />
      ) : !isReady ? (
        <Loading rows={8} />
      ) : !described?.credentials ? (
        <Empty title={t('profile.noCredentials')} />
      ) : (
        <>
          {stored && <State profile={stored} appId={appId} detail={detail.data} />}
          {detail.error && <Failure error={detail.error} retry={() => void detail.refetch()} />}
          {stored && mayChange && <Check id={id} />}
          {detail.data?.rotation && <Rotation id={id} />}
          {mayChange && !(isStored && detail.isPending) && (
            <CredentialsForm
              key={`${connector}/${name}`}
              id={id}
              connector={described}
              members={detail.data?.members ?? {}}
              isStored={isStored}
            />
          )}
        </>
      )}
      <Commands
        request={requestOf('getProfile', { path: { ...id } })}
        command={`profile put ${appId} ${connector} credentials.json`}
      />
    </>
  );
}

/** Number of devices above which a deletion requires that the number is typed. */
const typedFrom = 10_000;

function Delete({ id, devices }: { id: ProfileId; devices: number | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { remove } = useProfileChange(id);
  const { appId } = id;
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <Confirm
        trigger={t('profile.delete')}
        title={t('profile.deleteTitle', { name: `${connectorName(id.connector)} · ${id.name}` })}
        action={t('profile.deleteNow')}
        typed={devices !== undefined && devices > typedFrom ? String(devices) : undefined}
        disabled={remove.isPending}
        onConfirm={() =>
          remove.mutate(undefined, {
            onSuccess: () => void navigate({ to: '/apps/$appId/profiles', params: { appId } }),
          })
        }
      >
        {devices === undefined
          ? t('profile.deleteText')
          : t('profile.deleteDevices', { devices: formatCount(devices) })}
      </Confirm>
    </>
  );
}

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
  const { notAfter, findings, meanings, members, secrets, receiptUrl } = detail;
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
    ...(receiptUrl
      ? ([[t('profile.receiptUrl'), <code key="receipts">{receiptUrl}</code>]] satisfies Row[])
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
