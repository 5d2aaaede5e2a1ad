import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { UsageReport } from '../../../../../client/operations.ts';
import { type Days, usageOf, useUsage } from '../../../api/apps.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Download } from '../../../kit/controls/files.tsx';
import { toCsv } from '../../../kit/data/csv.ts';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Bar } from '../../../kit/data/values.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { Empty } from '../../../kit/states.tsx';
import { formatCount, formatMoney } from '../../../text/format.ts';
import { DaysPage } from './days-page.tsx';

const dayMs = 86_400_000;

/** Returns the UTC day of a time, as `YYYY-MM-DD`. */
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns the first and last of the `days` UTC days that end with the day of `nowMs`. */
export const lastDays = (nowMs: number, days: number): { from: string; to: string } => ({
  from: dayOf(nowMs - (days - 1) * dayMs),
  to: dayOf(nowMs),
});

/** Formats the usage per day as CSV with headings. */
export function usageCsv(days: readonly UsageReport[]): string {
  const headings = ['day_utc', 'recipients', 'calls', 'peak_calls_per_minute', 'fees', 'currency'];
  const rows = days.map(({ day, recipients, calls, peakCallsPerMinute, fees }) =>
    [day, recipients, calls, peakCallsPerMinute, fees.total, fees.currency].map(String),
  );
  return toCsv([headings, ...rows]);
}

/** Returns the totals of several days. */
export function totalsOf(days: readonly UsageReport[]) {
  const sum = (read: (day: UsageReport) => number) => days.reduce((all, day) => all + read(day), 0);
  return {
    recipients: sum(({ recipients }) => recipients),
    calls: sum(({ calls }) => calls),
    fees: sum(({ fees }) => fees.total),
    currency: days[0]?.fees.currency ?? 'CNY',
    maxRecipients: Math.max(0, ...days.map(({ recipients }) => recipients)),
  };
}

const route = getRouteApi('/apps/$appId/usage');
const shownDays = 30;

/** Recipients, calls and fees of an app per UTC day. */
export function Usage() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const search = route.useSearch();
  const usual = lastDays(Date.now(), shownDays);
  const days = { from: search.from ?? usual.from, to: search.to ?? usual.to };
  const navigate = useNavigate();
  const change = (more: Partial<Days>) =>
    void navigate({ to: '/apps/$appId/usage', params: { appId }, search: { ...days, ...more } });
  const query = useUsage(appId, days);
  return (
    <>
      <DaysPage title={t('nav.usage')} days={days} onChange={change} query={query}>
        {(used) => <Report appId={appId} days={used} />}
      </DaysPage>
      <Commands
        request={requestOf('getUsage', usageOf(appId, days))}
        command={`usage --app ${appId}`}
      />
    </>
  );
}

function Report({ appId, days }: { appId: string; days: UsageReport[] }) {
  const { t } = useTranslation();
  const totals = totalsOf(days);
  const isUnused = totals.recipients + totals.calls === 0;
  return (
    <>
      <Panel title={t('usage.sum')}>
        <Facts
          rows={[
            [t('overview.recipients'), formatCount(totals.recipients)],
            [t('overview.calls'), formatCount(totals.calls)],
            [t('usage.fees'), formatMoney(totals.fees, totals.currency)],
          ]}
        />
      </Panel>
      <Panel
        title={t('usage.byDay')}
        side={
          <Download
            name={`usage-${appId}-${days[0]?.day}-${days.at(-1)?.day}.csv`}
            label={t('action.exportCsv')}
            load={() => usageCsv(days)}
          />
        }
      >
        {isUnused ? (
          <Empty title={t('usage.empty')}>
            <p>{t('usage.emptyHint')}</p>
          </Empty>
        ) : (
          <Table
            label={t('usage.byDay')}
            columns={columnsOf(totals.maxRecipients, t)}
            rows={[...days].reverse()}
            keyOf={({ day }) => day}
          />
        )}
      </Panel>
    </>
  );
}

function columnsOf(maxRecipients: number, t: TFunction): Column<UsageReport>[] {
  return [
    { key: 'day', title: t('usage.day'), cell: ({ day }) => day },
    {
      key: 'bar',
      title: t('usage.share'),
      isWide: true,
      cell: ({ day, recipients }) => (
        <Bar
          label={t('usage.barOf', { day })}
          total={maxRecipients}
          segments={[{ tone: 'good', value: recipients, label: t('overview.recipients') }]}
        />
      ),
    },
    {
      key: 'recipients',
      title: t('overview.recipients'),
      isNumber: true,
      cell: ({ recipients }) => formatCount(recipients),
    },
    {
      key: 'calls',
      title: t('overview.calls'),
      isNumber: true,
      cell: ({ calls }) => formatCount(calls),
    },
    {
      key: 'peak',
      title: t('overview.peak'),
      isNumber: true,
      cell: ({ peakCallsPerMinute }) => formatCount(peakCallsPerMinute),
    },
    {
      key: 'fees',
      title: t('usage.fees'),
      isNumber: true,
      cell: ({ fees }) => formatMoney(fees.total, fees.currency),
    },
  ];
}
