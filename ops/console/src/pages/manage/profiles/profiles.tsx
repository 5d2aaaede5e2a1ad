import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type {
  Breaker,
  FailedReceipt,
  Overview,
  ProfileDetail,
  PushProfile,
} from '../../../../../client/operations.ts';
import { useOverview } from '../../../api/apps.ts';
import { useBreakers } from '../../../api/operating.ts';
import {
  useFailedReceipts,
  useMeta,
  useProfileDetails,
  useProfiles,
  useReceiptRedrive,
} from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Choice, TextField } from '../../../kit/controls/field.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Reasons, Time } from '../../../kit/data/values.tsx';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import { BreakerBadge } from '../../operating/operating.tsx';
import styles from './profiles.module.css';

/** Returns the number of devices that a profile serves. For a very large app it is a minimum. */
export function devicesText(
  { devices, devicesAreLeast }: Pick<ProfileDetail, 'devices' | 'devicesAreLeast'>,
  t: TFunction,
): string {
  const number = formatCount(devices);
  return devicesAreLeast ? t('profiles.least', { number }) : number;
}

const route = getRouteApi('/apps/$appId/profiles');

/** Push profiles of an app: the credentials for each gateway, and their states. */
export function Profiles() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const mayChange = useMay('operator');
  return (
    <>
      <PageHeader title={t('nav.profiles')} />
      <Panel title={t('profiles.list')}>
        <ProfileTable appId={appId} />
      </Panel>
      {mayChange && (
        <Panel title={t('profiles.add')}>
          <NewProfile appId={appId} />
        </Panel>
      )}
      <FailedReceipts appId={appId} />
      <Commands
        request={requestOf('listProfiles', { path: { appId } })}
        command={`profile list ${appId}`}
      />
    </>
  );
}

type Finding = Overview['findings'][number];

/** Table row: a profile with its breaker and the finding about its credentials. */
interface Row extends PushProfile {
  breaker: Breaker | undefined;
  detail: ProfileDetail | undefined;
  finding: Finding | undefined;
  /** True if the findings are loaded. */
  isInspected: boolean;
}

function ProfileTable({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useProfiles(appId);
  const breakers = useBreakers().data?.results ?? [];
  const overview = useOverview(appId).data;
  const details = useProfileDetails(appId, useMay('operator')).data?.results ?? [];
  if (isPending) return <Loading rows={6} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0)
    return (
      <Empty title={t('profiles.empty')}>
        <p>{t('profiles.emptyHint')}</p>
      </Empty>
    );
  const isOf = (profile: PushProfile) => (other: { connector: string; profile: string }) =>
    other.connector === profile.connector && other.profile === profile.name;
  const findings = [...(overview?.findings ?? []), ...(overview?.profilesExpiring ?? [])];
  const rows = data.results.map((profile) => ({
    ...profile,
    breaker: breakers.find((breaker) => breaker.appId === appId && isOf(profile)(breaker)),
    detail: details.find(({ connector, name }) => isOf(profile)({ connector, profile: name })),
    finding: findings.find(isOf(profile)),
    isInspected: overview !== undefined,
  }));
  return (
    <Table
      label={t('profiles.list')}
      columns={columnsOf(appId, t)}
      rows={rows}
      keyOf={({ connector, name }) => `${connector}/${name}`}
    />
  );
}

function columnsOf(appId: string, t: TFunction): Column<Row>[] {
  return [
    {
      key: 'connector',
      title: t('push.connector'),
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'name',
      title: t('profiles.name'),
      cell: ({ connector, name }) => (
        <Link to="/apps/$appId/profiles/$connector/$name" params={{ appId, connector, name }}>
          <code>{name}</code>
        </Link>
      ),
    },
    {
      key: 'devices',
      title: t('pushes.devices'),
      isNumber: true,
      cell: ({ detail }) => (detail ? devicesText(detail, t) : '–'),
    },
    {
      key: 'breaker',
      title: t('profiles.breaker'),
      cell: ({ breaker }) => (breaker ? <BreakerBadge breaker={breaker} /> : '–'),
    },
    {
      key: 'credentials',
      title: t('profiles.credentials'),
      isWide: true,
      cell: ({ finding, isInspected }) => (isInspected ? <Credentials finding={finding} /> : '–'),
    },
    {
      key: 'ends',
      title: t('profiles.ends'),
      cell: ({ detail }) => <Time at={detail?.notAfter} />,
    },
    {
      key: 'updated',
      title: t('profiles.updated'),
      cell: ({ updatedAt }) => <Time at={updatedAt} />,
    },
  ];
}

function Credentials({ finding }: { finding: Finding | undefined }) {
  const { t } = useTranslation();
  if (!finding) return <Badge tone="good">{t('profiles.valid')}</Badge>;
  if (finding.problems.length > 0)
    return (
      <>
        <Badge tone="bad">{t('overview.problem')}</Badge>{' '}
        <Reasons reasons={finding.problems} meanings={finding.meanings} />
      </>
    );
  return (
    <>
      <Badge tone="warn">{t('overview.expires')}</Badge> <Time at={finding.expiresAt} />
    </>
  );
}

/** Form with a connector and a name that opens the credentials form. */
function NewProfile({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { data, error } = useMeta();
  const known = data?.connectors.filter(({ credentials }) => credentials !== null) ?? [];
  const [chosen, setChosen] = useState('');
  const [name, setName] = useState('_default');
  if (error && !data) return <Failure error={error} />;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const connector = chosen || known[0]?.id;
    if (!connector) return;
    void navigate({
      to: '/apps/$appId/profiles/$connector/$name',
      params: { appId, connector, name },
    });
  };
  return (
    <form className={styles.add} onSubmit={onSubmit}>
      <Choice
        label={t('push.connector')}
        value={chosen}
        onChange={(event) => setChosen(event.target.value)}
      >
        {known.map(({ id }) => (
          <option key={id} value={id}>
            {connectorName(id)}
          </option>
        ))}
      </Choice>
      <TextField
        label={t('profiles.name')}
        hint={t('profiles.nameHint')}
        value={name}
        required
        pattern="_default|[A-Za-z][A-Za-z0-9_]{0,63}"
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit">{t('profiles.enter')}</Button>
    </form>
  );
}

/**
 * Refused receipts from gateways, with a button that processes them again. Renders nothing if there
 * are none.
 */
function FailedReceipts({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const mayChange = useMay('operator');
  const { data } = useFailedReceipts(appId);
  const redrive = useReceiptRedrive(appId);
  const rows = data?.results ?? [];
  if (rows.length === 0 && redrive.data === undefined) return null;
  return (
    <Panel
      title={t('redrive.receipts')}
      side={
        mayChange && (
          <Button isBusy={redrive.isPending} onClick={() => redrive.mutate()}>
            {t('redrive.receiptsNow')}
          </Button>
        )
      }
    >
      {redrive.error && <Failure error={redrive.error} />}
      {redrive.data && (
        <p role="status">
          {t('redrive.receiptsDone', {
            processed: formatCount(redrive.data.processed),
            refused: formatCount(redrive.data.refused),
          })}
        </p>
      )}
      <Table
        label={t('redrive.receipts')}
        columns={receiptColumns(t)}
        rows={rows}
        keyOf={({ id }) => id}
      />
    </Panel>
  );
}

const receiptColumns = (t: TFunction): Column<FailedReceipt>[] => [
  { key: 'at', title: t('failures.at'), cell: ({ at }) => <Time at={at} /> },
  {
    key: 'connector',
    title: t('push.connector'),
    cell: ({ connector }) => connectorName(connector),
  },
  {
    key: 'reason',
    title: t('failures.reason'),
    isWide: true,
    cell: ({ status, reason }) => (
      <code lang="en" translate="no">
        {status} {reason}
      </code>
    ),
  },
];
