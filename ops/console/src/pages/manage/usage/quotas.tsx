import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { Quotas as QuotasData } from '../../../../../client/operations.ts';
import { useQuotas } from '../../../api/apps.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { TextField } from '../../../kit/controls/field.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Bar, Reason } from '../../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './usage.module.css';

const route = getRouteApi('/apps/$appId/quotas');

/**
 * Gateway quotas on a day in China's time zone: used, remaining, and required by scheduled pushes.
 */
export function Quotas() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { day } = route.useSearch();
  const navigate = useNavigate();
  const { data, error, isPending, refetch } = useQuotas(appId, day);
  const choose = (next: string) =>
    void navigate({
      to: '/apps/$appId/quotas',
      params: { appId },
      search: { day: next || undefined },
    });
  return (
    <>
      <PageHeader title={t('nav.quotas')} />
      <div className={styles.days}>
        <TextField
          type="date"
          label={t('quotas.day')}
          hint={t('quotas.zone')}
          value={day ?? data?.day ?? ''}
          onChange={(event) => choose(event.target.value)}
        />
      </div>
      {isPending ? (
        <Loading rows={6} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Report appId={appId} quotas={data} />
      )}
      <Commands
        request={requestOf('getQuotas', { path: { appId }, query: { day } })}
        command={`usage --app ${appId}`}
      />
    </>
  );
}

function Report({ appId, quotas }: { appId: string; quotas: QuotasData }) {
  const { t } = useTranslation();
  const { results, app, scheduled } = quotas;
  return (
    <>
      <Panel title={t('quotas.gateways')} side={scheduled && <Scheduled scheduled={scheduled} />}>
        {results.length === 0 ? (
          <Empty title={t('quotas.empty')}>
            <Link to="/apps/$appId/profiles" params={{ appId }}>
              {t('nav.profiles')}
            </Link>
          </Empty>
        ) : (
          <>
            <Table
              label={t('quotas.gateways')}
              columns={columnsOf(results, t)}
              rows={results}
              keyOf={(row) => `${row.connector}/${row.profile}/${row.class}`}
            />
            {results.some(({ limit }) => limit === null) && (
              <p className={styles.unknown}>{t('quotas.unknownHint')}</p>
            )}
          </>
        )}
      </Panel>
      <Panel
        title={t('quotas.app')}
        side={<span className={styles.note}>{t('overview.utcDay', { day: app.day })}</span>}
      >
        <div className={styles.cap}>
          <Use use={app} />
          <Facts
            rows={[
              [
                t('quotas.used'),
                t('overview.of', { done: formatCount(app.used), all: formatCount(app.limit) }),
              ],
              [t('quotas.left'), formatCount(Math.max(0, app.limit - app.used))],
              [t('quotas.forecast'), forecastText(app.forecast)],
            ]}
          />
        </div>
      </Panel>
    </>
  );
}

/** Number of scheduled pushes that the forecast includes. */
function Scheduled({
  scheduled: { pushes, counted },
}: {
  scheduled: NonNullable<QuotasData['scheduled']>;
}) {
  const { t } = useTranslation();
  const numbers = { pushes: formatCount(pushes), counted: formatCount(counted) };
  return (
    <span className={styles.note}>
      {t(pushes === counted ? 'quotas.scheduled' : 'quotas.scheduledPart', numbers)}
    </span>
  );
}

type Row = QuotasData['results'][number];

interface Used {
  used: number;
  limit: number | null;
  forecast: number | null;
}

const forecastText = (forecast: number | null): string =>
  forecast === null ? '–' : formatCount(forecast);

/** True if scheduled pushes need more than the remaining quota. */
const isShort = ({ used, limit, forecast }: Used): boolean =>
  limit !== null && used + (forecast ?? 0) > limit;

/** Bar of used and scheduled recipients compared with the limit. */
function Use({ use }: { use: Used }) {
  const { t } = useTranslation();
  if (use.limit === null) return null;
  const isOver = isShort(use);
  return (
    <Bar
      label={t('quotas.use')}
      total={Math.max(use.limit, 1)}
      segments={[
        {
          tone: isOver ? 'bad' : 'good',
          value: Math.min(use.used, use.limit),
          label: t('quotas.used'),
        },
        {
          tone: 'warn',
          value: Math.min(use.forecast ?? 0, use.limit),
          label: t('quotas.forecast'),
        },
      ]}
    />
  );
}

/** Returns the columns of the rows. Leaves out columns that are empty in every row. */
function columnsOf(rows: Row[], t: TFunction): Column<Row>[] {
  const hasLimit = rows.some(({ limit }) => limit !== null);
  const hasClass = rows.some((row) => row.class !== '');
  const columns: (Column<Row> | false)[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      isWide: !hasLimit,
      cell: ({ connector, profile }) => `${connectorName(connector)} · ${profile}`,
    },
    hasClass && {
      key: 'class',
      title: t('quotas.class'),
      cell: (row) => row.class || t('quotas.allClasses'),
    },
    hasLimit && {
      key: 'bar',
      title: t('quotas.use'),
      isWide: true,
      cell: (row) => <Use use={row} />,
    },
    { key: 'used', title: t('quotas.used'), isNumber: true, cell: ({ used }) => formatCount(used) },
    {
      key: 'left',
      title: t('quotas.left'),
      isNumber: true,
      cell: ({ used, limit }) =>
        limit === null ? t('quotas.unknown') : formatCount(Math.max(0, limit - used)),
    },
    {
      key: 'forecast',
      title: t('quotas.forecast'),
      isNumber: true,
      cell: ({ forecast }) => forecastText(forecast),
    },
    { key: 'state', title: t('pushes.state'), cell: (row) => <QuotaState row={row} /> },
    {
      key: 'rate',
      title: t('quotas.rate'),
      isNumber: true,
      cell: ({ rate }) =>
        rate === null ? '–' : t(`quotaRate.${rate.counts}`, { rate: formatCount(rate.perSecond) }),
    },
  ];
  return columns.filter((column) => column !== false);
}

function QuotaState({ row }: { row: Row }) {
  const { t } = useTranslation();
  if (row.closedReason !== null)
    return (
      <>
        <Badge tone="bad">{t('quotas.closed')}</Badge>{' '}
        <Reason reason={row.closedReason} meaning={row.closedMeaning} />
      </>
    );
  if (isShort(row)) return <Badge tone="warn">{t('quotas.short')}</Badge>;
  return <Badge tone="good">{t('quotas.open')}</Badge>;
}
