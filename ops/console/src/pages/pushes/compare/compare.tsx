import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { ListedPush } from '../../../../../client/operations.ts';
import { usePush, waitingOf } from '../../../api/push.ts';
import { usePushes } from '../../../api/pushes.ts';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Choice } from '../../../kit/controls/field.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { FoldedJson, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount, formatDuration, formatShare, formatTime } from '../../../text/format.ts';
import { PushAudience } from '../shown-condition.tsx';
import { ShownMessage } from '../shown-message.tsx';
import { PushLink, StateBadge, sourceOf, titleOf } from '../shown-push.tsx';
import styles from './compare.module.css';
import {
  type Compared,
  type ConnectorChange,
  connectorChanges,
  isSlower,
  type Share,
  timesOf,
} from './differences.ts';

const route = getRouteApi('/apps/$appId/pushes/compare');

/** Compares two pushes: messages, recipients, pace and outcomes. Highlights what got worse. */
export function Compare() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { a, b } = route.useSearch();
  const { data, error, isPending, refetch } = usePushes(appId, {});
  const pushes = data?.results ?? [];
  return (
    <>
      <PageHeader title={t('compare.title')} />
      {isPending ? (
        <Loading rows={2} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : pushes.length < 2 && !(a && b) ? (
        <Empty title={t('compare.tooFew')}>
          <Link to="/apps/$appId/pushes" params={{ appId }}>
            {t('nav.pushes')}
          </Link>
        </Empty>
      ) : (
        <Chosen appId={appId} pushes={pushes} a={a} b={b} />
      )}
      {a && b ? (
        <Sides appId={appId} a={a} b={b} />
      ) : (
        pushes.length > 1 && <Empty title={t('compare.choose')} />
      )}
      <Commands
        request={
          a
            ? requestOf('getPushProgress', { path: { appId, id: a } })
            : requestOf('listAppPushes', { path: { appId } })
        }
        command={`pushes --app ${appId}`}
      />
    </>
  );
}

interface ChosenProps {
  appId: string;
  pushes: ListedPush[];
  a: string | undefined;
  b: string | undefined;
}

/** Selection of the two pushes among the newest pushes. */
function Chosen({ appId, pushes, a, b }: ChosenProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const choose = (search: { a?: string | undefined; b?: string | undefined }) =>
    void navigate({
      to: '/apps/$appId/pushes/compare',
      params: { appId },
      search: { a, b, ...search },
    });
  const options = (chosen: string | undefined) => (
    <>
      <option value="">{t('compare.none')}</option>
      {chosen !== undefined && !pushes.some(({ objectId }) => objectId === chosen) && (
        <option value={chosen}>{chosen}</option>
      )}
      {pushes.map((push) => (
        <option key={push.objectId} value={push.objectId}>
          {`${titleOf(push, t).slice(0, 60)} · ${formatTime(push.createdAt)}`}
        </option>
      ))}
    </>
  );
  return (
    <div className={styles.pair}>
      <Choice
        label={t('compare.a')}
        value={a ?? ''}
        onChange={(event) => choose({ a: event.target.value || undefined })}
      >
        {options(a)}
      </Choice>
      <Choice
        label={t('compare.b')}
        value={b ?? ''}
        onChange={(event) => choose({ b: event.target.value || undefined })}
      >
        {options(b)}
      </Choice>
    </div>
  );
}

function Sides({ appId, a, b }: { appId: string; a: string; b: string }) {
  const { t } = useTranslation();
  const first = useCompared(appId, a);
  const second = useCompared(appId, b);
  const error = first.error ?? second.error;
  if (error) return <Failure error={error} />;
  if (!first.side || !second.side) return <Loading rows={8} />;
  const sides: [Compared, Compared] = [first.side, second.side];
  return (
    <>
      <Panel title={t('compare.outcomes')}>
        <Figures appId={appId} sides={sides} />
      </Panel>
      <Panel title={t('push.byConnector')}>
        <Connectors sides={sides} />
      </Panel>
      <div className={styles.pair}>
        {sides.map(({ push }, at) => (
          <Panel
            key={at === 0 ? 'a' : 'b'}
            title={t(at === 0 ? 'compare.messageA' : 'compare.messageB')}
          >
            <ShownMessage push={push} />
          </Panel>
        ))}
        {sides.map(({ push }, at) => (
          <Panel
            key={at === 0 ? 'where-a' : 'where-b'}
            title={t(at === 0 ? 'compare.whereA' : 'compare.whereB')}
          >
            <PushAudience appId={appId} push={push} />
            <FoldedJson value={push.request.target ?? push.where} />
          </Panel>
        ))}
      </div>
    </>
  );
}

function useCompared(appId: string, pushId: string): { side?: Compared; error: unknown } {
  const { record, progress } = usePush(appId, pushId);
  if (record.data && progress.data)
    return { side: { push: record.data, progress: progress.data }, error: null };
  return { error: record.error ?? progress.error };
}

interface Row {
  name: string;
  a: ReactNode;
  b: ReactNode;
  isWorse?: boolean;
}

/** Outcomes, pace and settings of two pushes, one row each. */
export function Figures({ appId, sides }: { appId: string; sides: [Compared, Compared] }) {
  const { t } = useTranslation();
  const rows: Row[] = [
    ...rowsOf(sides, [
      [t('pushes.message'), ({ push }) => <PushLink appId={appId} push={push} />],
      [t('pushes.state'), ({ push }) => <StateBadge push={push} />],
      [t('pushes.accepted'), ({ push }) => <Time at={push.createdAt} />],
      [t('pushes.source'), ({ push }) => sourceOf(push, t)],
      [t('pushes.devices'), ({ push }) => formatCount(push.devices)],
      [
        t('outcome.sent'),
        ({ push, progress }) =>
          shareText((progress.outcomes.sent ?? 0) - waitingOf(progress), push.devices),
      ],
      [
        t('outcome.unacknowledged'),
        ({ push, progress }) => shareText(waitingOf(progress), push.devices),
      ],
      [
        t('outcome.invalid_token'),
        ({ push, progress }) => shareText(progress.outcomes.invalid_token, push.devices),
      ],
      [
        t('outcome.failed'),
        ({ push, progress }) => shareText(progress.outcomes.failed, push.devices),
      ],
      [
        t('outcome.unsent'),
        ({ push, progress }) => shareText(unsentOf(progress.outcomes), push.devices),
      ],
      [t('pushes.delivered'), ({ progress }) => formatCount(progress.delivered)],
      [t('pushes.clicked'), ({ progress }) => formatCount(progress.clicked)],
    ]),
    ...timeRows(sides, t),
    ...rowsOf(sides, [
      [
        t('push.flowControl'),
        ({ push }) =>
          push.flowControl === null
            ? t('push.unlimited')
            : t('push.pace', { rate: formatCount(push.flowControl) }),
      ],
      [t('push.environment'), ({ push }) => t(`compose.${push.prod}`)],
      [t('push.expires'), ({ push }) => <Time at={push.expiresAt} />],
    ]),
  ];
  const columns: Column<Row>[] = [
    { key: 'name', title: t('compare.figure'), cell: ({ name }) => name },
    { key: 'a', title: t('compare.a'), cell: ({ a }) => a },
    {
      key: 'b',
      title: t('compare.b'),
      isWide: true,
      cell: ({ b, isWorse = false }) => (
        <>
          {b} {isWorse && <Badge tone="bad">{t('compare.worse')}</Badge>}
        </>
      ),
    },
  ];
  return (
    <Table label={t('compare.outcomes')} columns={columns} rows={rows} keyOf={({ name }) => name} />
  );
}

function rowsOf(
  [a, b]: [Compared, Compared],
  named: [string, (side: Compared) => ReactNode][],
): Row[] {
  return named.map(([name, show]) => ({ name, a: show(a), b: show(b) }));
}

function timeRows([a, b]: [Compared, Compared], t: (key: string) => string): Row[] {
  const [first, second] = [timesOf(a.push), timesOf(b.push)];
  const row = (name: string, before: number | null, after: number | null): Row => ({
    name,
    a: durationText(before),
    b: durationText(after),
    isWorse: isSlower(before, after),
  });
  return [
    row(t('pushes.firstSend'), first.firstSendMs, second.firstSendMs),
    row(t('compare.total'), first.totalMs, second.totalMs),
  ];
}

const durationText = (ms: number | null): string => (ms === null ? '–' : formatDuration(ms));

const shareText = (part: number | undefined, whole: number): string =>
  `${formatCount(part ?? 0)} · ${formatShare(part ?? 0, whole)}`;

const unsentOf = ({
  expired = 0,
  capped = 0,
  dropped = 0,
}: Compared['progress']['outcomes']): number => expired + capped + dropped;

/** Recipients and failed share of two pushes by connector. */
export function Connectors({ sides: [a, b] }: { sides: [Compared, Compared] }) {
  const { t } = useTranslation();
  const rows = connectorChanges(a.progress.connectors, b.progress.connectors);
  if (rows.length === 0) return <Empty title={t('push.noConnectors')} />;
  const failed = ({ failed: part, ended }: Share) => formatShare(part, ended);
  const columns: Column<ConnectorChange>[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      isWide: true,
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'a',
      title: t('compare.endedA'),
      isNumber: true,
      cell: (row) => formatCount(row.a.ended),
    },
    {
      key: 'b',
      title: t('compare.endedB'),
      isNumber: true,
      cell: (row) => formatCount(row.b.ended),
    },
    { key: 'failedA', title: t('compare.failedA'), isNumber: true, cell: (row) => failed(row.a) },
    { key: 'failedB', title: t('compare.failedB'), isNumber: true, cell: (row) => failed(row.b) },
    {
      key: 'change',
      title: t('compare.change'),
      cell: ({ isWorse }) =>
        isWorse === null ? (
          '–'
        ) : (
          <Badge tone={isWorse ? 'bad' : 'idle'}>
            {t(isWorse ? 'compare.worse' : 'compare.same')}
          </Badge>
        ),
    },
  ];
  return (
    <Table
      label={t('push.byConnector')}
      columns={columns}
      rows={rows}
      keyOf={({ connector }) => connector}
    />
  );
}
