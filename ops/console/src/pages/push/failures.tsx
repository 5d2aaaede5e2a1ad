import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { FailureGroup, PushDetail, PushFailure } from '../../../../client/operations.ts';
import { maxExported } from '../../api/apps.ts';
import { readFailures, useFailureGroups, useFailures, useInvalidDeletion } from '../../api/push.ts';
import { useMay } from '../../api/session.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Download } from '../../kit/controls/files.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { toCsv } from '../../kit/data/csv.ts';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Marked, Reason, Time } from '../../kit/data/values.tsx';
import { Notice, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { FailureFilters } from '../../search.ts';
import { connectorName, useRemedyText } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import styles from './push.module.css';
import { siteOf } from './vendor-sites.ts';

interface FailuresExportProps {
  push: { appId: string; pushId: string };
  filters: FailureFilters;
}

/** Button that saves the failures of a push as CSV, for one cause or all causes. */
function FailuresExport({ push, filters }: FailuresExportProps) {
  const { t } = useTranslation();
  return (
    <Download
      label={t('action.exportCsv')}
      hint={t('action.exportHint', { most: formatCount(maxExported) })}
      name={`failures-${push.pushId}.csv`}
      load={async () => failuresCsv(await readFailures(push, filters))}
    />
  );
}

const headings = ['device', 'connector', 'outcome', 'status', 'reason', 'at'];

const failuresCsv = (failures: readonly PushFailure[]): string =>
  toCsv([
    headings,
    ...failures.map(({ objectId, connector, outcome, status, reason, at }) => [
      objectId ?? '',
      connector,
      outcome,
      String(status),
      reason,
      at,
    ]),
  ]);

const route = getRouteApi('/apps/$appId/pushes/$pushId');

interface FailuresProps {
  appId: string;
  pushId: string;
  isOpen: boolean;
}

/** Failures of a push: causes with remedies, and the devices of each cause. */
export function Failures(push: FailuresProps) {
  const { t } = useTranslation();
  const { connector, outcome, reason, cursor } = route.useSearch();
  const navigate = useNavigate();
  const show = (filters: FailureFilters) =>
    void navigate({
      to: '/apps/$appId/pushes/$pushId',
      params: { appId: push.appId, pushId: push.pushId },
      search: { tab: 'failures', ...filters },
    });
  const filters = { connector, outcome, reason };
  return (
    <>
      <Panel title={t('failures.reasons')} side={<FailuresExport push={push} filters={{}} />}>
        <Causes push={push} />
      </Panel>
      {connector !== undefined && (
        <Panel
          title={`${t('failures.list')}: ${[connectorName(connector), ...(reason ? [reason] : outcome ? [t(`outcome.${outcome}`)] : [])].join(', ')}`}
          side={
            <>
              <Link
                to="/apps/$appId/pushes/$pushId"
                params={{ ...push }}
                search={{ tab: 'failures' }}
              >
                {t('failures.all')}
              </Link>
              <FailuresExport push={push} filters={filters} />
            </>
          }
        >
          <Devices
            push={push}
            filters={{ ...filters, cursor }}
            open={(next) => show({ ...filters, cursor: next })}
          />
        </Panel>
      )}
    </>
  );
}

interface VendorLinkProps {
  connector: FailureGroup['connector'];
  remedy: FailureGroup['remedy'];
}

/** Link to the site of the vendor if the remedy leads there. */
function VendorLink({ connector, remedy }: VendorLinkProps) {
  const { t } = useTranslation();
  const site = siteOf(connector, remedy.code);
  if (site === undefined) return null;
  return (
    <a href={site} target="_blank" rel="noreferrer">
      {t('failures.site', { name: connectorName(connector) })}
    </a>
  );
}

function Causes({ push }: { push: FailuresProps }) {
  const { t } = useTranslation();
  const remedyText = useRemedyText();
  const { data, error, isPending, refetch } = useFailureGroups(push);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('failures.none')} />;
  const columns: Column<FailureGroup>[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'outcome',
      title: t('failures.outcome'),
      cell: ({ outcome }) => t(`outcome.${outcome}`),
    },
    {
      key: 'reason',
      title: t('failures.reason'),
      cell: ({ status, reason, meaning }) => <Reason {...{ status, reason, meaning }} />,
    },
    { key: 'n', title: t('failures.count'), isNumber: true, cell: ({ n }) => formatCount(n) },
    {
      key: 'remedy',
      title: t('failures.remedy'),
      isWide: true,
      cell: ({ connector, remedy }) => (
        <span className={styles.remedy}>
          <Marked text={remedyText(remedy)} /> <VendorLink connector={connector} remedy={remedy} />
        </span>
      ),
    },
    {
      key: 'show',
      title: t('failures.list'),
      cell: ({ connector, outcome, reason }) => (
        <Link
          to="/apps/$appId/pushes/$pushId"
          params={{ appId: push.appId, pushId: push.pushId }}
          search={{ tab: 'failures', connector, outcome, reason }}
        >
          {t('failures.show')}
        </Link>
      ),
    },
  ];
  return (
    <Table
      label={t('failures.reasons')}
      columns={columns}
      rows={data.results}
      keyOf={({ connector, outcome, status, reason }) =>
        `${connector} ${outcome} ${status} ${reason}`
      }
    />
  );
}

interface DevicesProps {
  push: FailuresProps;
  filters: FailureFilters;
  open: (cursor: string | undefined) => void;
}

function Devices({ push, filters, open }: DevicesProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useFailures(push, filters);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('failures.none')} />;
  const columns: Column<PushFailure>[] = [
    {
      key: 'device',
      title: t('failures.device'),
      isWide: true,
      cell: (row) => <DeviceLink push={push} row={row} />,
    },
    {
      key: 'status',
      title: t('failures.status'),
      isNumber: true,
      cell: ({ status }) => status || '–',
    },
    {
      key: 'reason',
      title: t('failures.reason'),
      cell: ({ reason, meaning }) => <Reason {...{ reason, meaning }} />,
    },
    { key: 'at', title: t('failures.at'), cell: ({ at }) => <Time at={at} /> },
  ];
  return (
    <>
      <Table
        label={t('failures.list')}
        columns={columns}
        rows={data.results}
        keyOf={({ objectId, at, reason }) => `${objectId} ${at} ${reason}`}
      />
      <Pager next={data.next} cursor={filters.cursor} open={open} />
    </>
  );
}

function DeviceLink({
  push: { appId, pushId },
  row: { objectId },
}: {
  push: FailuresProps;
  row: PushFailure;
}) {
  if (objectId === null) return <>–</>;
  return (
    <Link
      to="/apps/$appId/pushes/$pushId/devices/$installation"
      params={{ appId, pushId, installation: objectId }}
    >
      <code>{objectId}</code>
    </Link>
  );
}

/**
 * Warning that the gateway reported most tokens of a profile as invalid and that the devices were
 * kept. Operators can delete these devices.
 */
export function KeptTokens({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const mayDelete = useMay('operator');
  const deletion = useInvalidDeletion(appId, push.objectId);
  if (deletion.data)
    return (
      <Notice variant="plain">
        {t('keptTokens.deleted', { devices: formatCount(deletion.data.deleted) })}
      </Notice>
    );
  if (!push.keptTokens) return null;
  return (
    <>
      {push.keptTokens.map(({ connector, profile, answers, invalid, kept, reason }) => (
        <Notice key={`${connector} ${profile}`} variant="warn">
          {t('keptTokens.text', {
            gateway: connectorName(connector),
            profile,
            answers: formatCount(answers),
            invalid: formatCount(invalid),
            kept: formatCount(kept),
            reason,
          })}
        </Notice>
      ))}
      {deletion.error && <Failure error={deletion.error} />}
      {mayDelete && (
        <Confirm
          trigger={t('keptTokens.delete')}
          title={t('keptTokens.title')}
          action={t('keptTokens.deleteNow')}
          disabled={deletion.isPending}
          onConfirm={() => deletion.mutate()}
        >
          {t('keptTokens.question')}
        </Confirm>
      )}
    </>
  );
}
