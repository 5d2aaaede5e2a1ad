import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { AppReport } from '../../../../../client/operations.ts';
import { type Days, reportOf, useReport } from '../../../api/apps.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Download } from '../../../kit/controls/files.tsx';
import { toCsv } from '../../../kit/data/csv.ts';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Reason } from '../../../kit/data/values.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { Empty, Loading } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount, formatShare } from '../../../text/format.ts';
import { loadPage } from '../../missing.tsx';
import { DaysPage } from '../usage/days-page.tsx';
import { lastDays } from '../usage/usage.tsx';

const Chart = lazy(async () => ({
  default: (await loadPage(() => import('../../../kit/data/chart.tsx'))).Chart,
}));

const route = getRouteApi('/apps/$appId/reports');
const shownDays = 30;

type Day = AppReport['days'][number];

/** Figures in the order of the columns, with the keys of their names. */
const figures = [
  ['pushes', 'nav.pushes'],
  ['sent', 'outcome.sent'],
  ['delivered', 'pushes.delivered'],
  ['clicked', 'pushes.clicked'],
  ['received', 'pushes.events.received'],
  ['opened', 'pushes.events.opened'],
  ['dismissed', 'pushes.events.dismissed'],
  ['invalid_token', 'outcome.invalid_token'],
  ['failed', 'outcome.failed'],
  ['expired', 'outcome.expired'],
  ['capped', 'outcome.capped'],
  ['dropped', 'outcome.dropped'],
] as const satisfies readonly (readonly [Exclude<keyof Day, 'day'>, string])[];

/** Formats the days of a report as CSV with headings. */
export function reportCsv(days: readonly Day[]): string {
  const headings = ['day_utc', ...figures.map(([name]) => name)];
  return toCsv([
    headings,
    ...days.map((one) => [one.day, ...figures.map(([name]) => String(one[name]))]),
  ]);
}

/** Totals of an app by day over up to two years, and the growth of its devices. */
export function Reports() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const search = route.useSearch();
  const usual = lastDays(Date.now(), shownDays);
  const days = { from: search.from ?? usual.from, to: search.to ?? usual.to };
  const navigate = useNavigate();
  const change = (more: Partial<Days>) =>
    void navigate({ to: '/apps/$appId/reports', params: { appId }, search: { ...days, ...more } });
  const query = useReport(appId, days);
  return (
    <>
      <DaysPage title={t('nav.reports')} days={days} onChange={change} query={query}>
        {(report) => <Report appId={appId} report={report} />}
      </DaysPage>
      <Commands
        request={requestOf('getReport', reportOf(appId, days))}
        command={`report --app ${appId}`}
      />
    </>
  );
}

function Report({ appId, report }: { appId: string; report: AppReport }) {
  const { t } = useTranslation();
  const { days, connectors, classes, reasons } = report;
  const used = days.filter(({ pushes }) => pushes > 0);
  if (used.length === 0)
    return (
      <>
        <Empty title={t('reports.empty')}>
          <p>{t('reports.emptyHint')}</p>
        </Empty>
        <Growth report={report} />
      </>
    );
  const shown = figures.filter(([name]) => used.some((one) => one[name] > 0));
  return (
    <>
      <Panel title={t('reports.funnel')}>
        <Facts rows={funnelOf(days, t)} />
        <Suspense fallback={<Loading />}>
          <Chart
            times={days.map(({ day }) => Date.parse(day))}
            series={trendsOf(days, t)}
            summary={t('reports.trendSummary', { days: days.length })}
          />
        </Suspense>
      </Panel>
      <Panel
        title={t('usage.byDay')}
        side={
          <Download
            name={`report-${appId}-${report.from}-${report.to}.csv`}
            label={t('action.exportCsv')}
            load={() => reportCsv(days)}
          />
        }
      >
        <Table
          label={t('usage.byDay')}
          columns={[
            { key: 'day', title: t('usage.day'), cell: ({ day }) => day },
            ...countColumns<Day>(shown, t),
          ]}
          rows={[...used].reverse()}
          keyOf={({ day }) => day}
        />
      </Panel>
      <Panel title={t('reports.byConnector')}>
        <Table
          label={t('reports.byConnector')}
          columns={[
            {
              key: 'connector',
              title: t('push.connector'),
              cell: ({ connector }) =>
                connector === 'app' ? t('reports.app') : connectorName(connector),
            },
            ...countColumns<AppReport['connectors'][number]>(withoutPushes(shown), t),
          ]}
          rows={connectors}
          keyOf={({ connector }) => connector}
        />
      </Panel>
      {classes.some((one) => one.class !== '') && (
        <Panel title={t('reports.byClass')}>
          <Table
            label={t('reports.byClass')}
            columns={[
              {
                key: 'class',
                title: t('quotas.class'),
                cell: (one) => one.class || t('reports.noClass'),
              },
              ...countColumns<AppReport['classes'][number]>(shown, t),
            ]}
            rows={classes}
            keyOf={(one) => one.class}
          />
        </Panel>
      )}
      {reasons.length > 0 && (
        <Panel title={t('reports.reasons')}>
          <Table
            label={t('reports.reasons')}
            columns={reasonColumns(t)}
            rows={reasons}
            keyOf={keyOf}
          />
        </Panel>
      )}
      <Growth report={report} />
    </>
  );
}

type ReasonRow = AppReport['reasons'][number];
const keyOf = ({ connector, reason }: ReasonRow) => `${connector} ${reason}`;

const reasonColumns = (t: TFunction): Column<ReasonRow>[] => [
  {
    key: 'connector',
    title: t('push.connector'),
    cell: ({ connector }) => connectorName(connector),
  },
  {
    key: 'reason',
    title: t('failures.reason'),
    isWide: true,
    cell: ({ reason, meaning }) => <Reason reason={reason} meaning={meaning} />,
  },
  { key: 'n', title: t('failures.count'), isNumber: true, cell: ({ n }) => formatCount(n) },
];

type Shown = readonly (typeof figures)[number][];

const withoutPushes = (shown: Shown): Shown => shown.filter(([name]) => name !== 'pushes');

/** Columns with the figures that are not 0 everywhere. */
const countColumns = <Row extends Omit<Day, 'day'>>(shown: Shown, t: TFunction): Column<Row>[] =>
  shown.map(([name, title]) => ({
    key: name,
    title: t(title),
    isNumber: true,
    cell: (row) => formatCount(row[name]),
  }));

/** Sums of the days from sent to opened, with their share of the sent recipients. */
function funnelOf(days: readonly Day[], t: TFunction): [string, string][] {
  const sum = (name: Exclude<keyof Day, 'day'>) => days.reduce((all, one) => all + one[name], 0);
  const sent = sum('sent');
  const shareOf = (n: number) => (sent === 0 ? '–' : formatShare(n, sent));
  const row = (title: string, n: number): [string, string] => [
    title,
    `${formatCount(n)} (${shareOf(n)})`,
  ];
  return [
    [t('nav.pushes'), formatCount(sum('pushes'))],
    [t('outcome.sent'), formatCount(sent)],
    row(t('reports.reached'), Math.max(sum('delivered'), sum('received'))),
    row(t('reports.openedAny'), Math.max(sum('clicked'), sum('opened'))),
    row(t('outcome.invalid_token'), sum('invalid_token')),
  ];
}

const trendsOf = (days: readonly Day[], t: TFunction) => [
  { label: t('outcome.sent'), color: '--accent', values: days.map(({ sent }) => sent) },
  {
    label: t('reports.reached'),
    color: '--good-fill',
    values: days.map(({ delivered, received }) => Math.max(delivered, received)),
  },
  {
    label: t('reports.openedAny'),
    color: '--warn-fill',
    values: days.map(({ clicked, opened }) => Math.max(clicked, opened)),
  },
  {
    label: t('outcome.invalid_token'),
    color: '--bad-fill',
    values: days.map((one) => one.invalid_token),
  },
];

/** Number of devices by platform over the days. */
function Growth({ report: { installations } }: { report: AppReport }) {
  const { t } = useTranslation();
  if (installations.length === 0) return null;
  const days = [...new Set(installations.map(({ day }) => day))];
  const first = countsOf(installations, days[0]);
  const last = countsOf(installations, days.at(-1));
  const rows = [...last].map(([platform, n]) => ({ platform, n, was: first.get(platform) ?? 0 }));
  return (
    <Panel title={t('reports.growth')}>
      <Table
        label={t('reports.growth')}
        columns={[
          { key: 'platform', title: t('reports.platform'), cell: ({ platform }) => platform },
          {
            key: 'was',
            title: t('reports.onDay', { day: days[0] }),
            isNumber: true,
            cell: ({ was }) => formatCount(was),
          },
          {
            key: 'n',
            title: t('reports.onDay', { day: days.at(-1) }),
            isNumber: true,
            cell: ({ n }) => formatCount(n),
          },
        ]}
        rows={rows.sort((one, other) => other.n - one.n)}
        keyOf={({ platform }) => platform}
      />
    </Panel>
  );
}

const countsOf = (installations: AppReport['installations'], day: string | undefined) =>
  new Map(installations.filter((one) => one.day === day).map(({ platform, n }) => [platform, n]));
