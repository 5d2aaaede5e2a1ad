import { getRouteApi, Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { writeStep } from '../../../../../../shared/domain/texts/texts.ts';
import { requestOf } from '../../../../../client/client.ts';
import type { MoveInState } from '../../../../../client/operations.ts';
import { useMoveIn } from '../../../api/apps.ts';
import { Commands, Snippet } from '../../../kit/controls/copy.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Bar, Time, type Tone } from '../../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import { connectorName, useLanguage } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './move-in.module.css';

const route = getRouteApi('/apps/$appId/move-in');

/**
 * Progress of moving an app from LeanCloud: remaining steps, and devices that have already
 * called.
 */
export function MoveIn() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const { data, error, isPending, refetch } = useMoveIn(appId);
  return (
    <>
      <PageHeader title={t('moveIn.title')} />
      {isPending ? (
        <Loading rows={10} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Report appId={appId} state={data} />
      )}
      <Commands
        request={requestOf('getMoveIn', { path: { appId } })}
        command={`move-in-state --app ${appId}`}
      />
    </>
  );
}

interface ReportProps {
  appId: string;
  state: MoveInState;
}

function Report({ appId, state }: ReportProps) {
  const { t } = useTranslation();
  const { devices, users, countsAreLeast } = state;
  const least = (count: number) =>
    countsAreLeast ? `≥ ${formatCount(count)}` : formatCount(count);
  return (
    <>
      <Panel title={t('moveIn.steps')}>
        <Steps appId={appId} steps={state.steps} />
      </Panel>
      <Panel title={t('moveIn.arrivals')}>
        <Facts
          rows={[
            [t('moveIn.imported'), least(devices.imported)],
            [t('moveIn.seen'), least(devices.seen)],
            [t('moveIn.registered'), least(devices.registered)],
            [t('nav.users'), least(users)],
          ]}
        />
      </Panel>
      <Panel
        title={t('moveIn.byDay')}
        side={<span className={styles.note}>{t('moveIn.utc')}</span>}
      >
        {state.days.length === 0 ? (
          <Empty title={t('moveIn.noDays')} />
        ) : (
          <Days days={state.days} />
        )}
      </Panel>
      <Panel title={t('moveIn.gateways')}>
        {state.gateways.length === 0 ? (
          <Empty title={t('devices.empty')} />
        ) : (
          <Gateways appId={appId} gateways={state.gateways} />
        )}
      </Panel>
      <LastImport appId={appId} lastImport={state.lastImport} />
      {state.lastImport !== null && state.lastImport.refused > 0 && (
        <p className={styles.note}>{t('moveIn.refusedHint', { file: `${appId}.refused.jsonl` })}</p>
      )}
    </>
  );
}

const tones: Record<MoveInState['steps'][number]['state'], Tone> = {
  done: 'good',
  todo: 'warn',
  check: 'idle',
};

/** Page for each step. */
const pages = {
  keys: '/apps/$appId/settings',
  profiles: '/apps/$appId/profiles',
  hybridPush: '/apps/$appId/settings',
  mail: '/apps/$appId/messages',
  sms: '/apps/$appId/messages',
  functions: '/apps/$appId/settings',
  trial: '/apps/$appId/pushes/new',
  arrived: '/apps/$appId/devices',
} as const;
const pageOf = (id: string) => Object.entries(pages).find(([name]) => name === id)?.[1];

function Steps({ appId, steps }: { appId: string; steps: MoveInState['steps'] }) {
  const { t } = useTranslation();
  const language = useLanguage();
  return (
    <ol className={styles.steps}>
      {steps.map((step) => {
        const { id, state } = step;
        const to = pageOf(id);
        return (
          <li key={id} className={styles.step}>
            <span>
              <Badge tone={tones[state]}>{t(`moveIn.${state}`)}</Badge>
            </span>
            <span>
              {writeStep(step, language)}{' '}
              {to !== undefined && (
                <Link to={to} params={{ appId }}>
                  {t(`moveIn.open.${id}`)}
                </Link>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function LastImport({
  appId,
  lastImport,
}: {
  appId: string;
  lastImport: MoveInState['lastImport'];
}) {
  const { t } = useTranslation();
  const command = `npx carillon move-in ./export --app-id ${appId} --keys-file keys.json`;
  return (
    <Panel
      title={t('moveIn.lastImport')}
      side={
        lastImport && (
          <span className={styles.note}>
            <Time at={lastImport.at} /> ·{' '}
            {t('moveIn.seconds', { seconds: lastImport.seconds.toFixed(1) })}
          </span>
        )
      }
    >
      {lastImport ? (
        <ImportedClasses classes={lastImport.classes} />
      ) : (
        <Empty title={t('moveIn.noImport')}>
          <Snippet label={t('moveIn.noImportHint')} text={command} />
        </Empty>
      )}
    </Panel>
  );
}

/** Devices by the day of their last call, newest day first. */
export function Days({ days }: Pick<MoveInState, 'days'>) {
  const { t } = useTranslation();
  const maxDevices = Math.max(...days.map(({ moved, registered }) => moved + registered));
  const columns: Column<MoveInState['days'][number]>[] = [
    { key: 'day', title: t('moveIn.day'), cell: ({ day }) => <span translate="no">{day}</span> },
    {
      key: 'bar',
      title: t('moveIn.devices'),
      isWide: true,
      cell: ({ moved, registered }) => (
        <div className={styles.bar}>
          <Bar
            label={t('moveIn.devices')}
            total={maxDevices}
            segments={[
              { tone: 'good', value: moved, label: t('moveIn.moved') },
              { tone: 'warn', value: registered, label: t('moveIn.registered') },
            ]}
          />
        </div>
      ),
    },
    {
      key: 'moved',
      title: t('moveIn.moved'),
      isNumber: true,
      cell: ({ moved }) => formatCount(moved),
    },
    {
      key: 'registered',
      title: t('moveIn.registered'),
      isNumber: true,
      cell: ({ registered }) => formatCount(registered),
    },
  ];
  return (
    <Table
      label={t('moveIn.arrivals')}
      columns={columns}
      rows={[...days].reverse()}
      keyOf={({ day }) => day}
    />
  );
}

type Gateway = MoveInState['gateways'][number];

/** Devices by gateway and profile. If no profile serves them, shows the reason. */
export function Gateways({ appId, gateways }: Pick<MoveInState, 'gateways'> & { appId: string }) {
  const { t } = useTranslation();
  const columns: Column<Gateway>[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'profile',
      title: t('profiles.name'),
      cell: ({ connector, profile }) =>
        profile === '' || connector === 'channel' ? (
          '–'
        ) : (
          <Link
            to="/apps/$appId/profiles/$connector/$name"
            params={{ appId, connector, name: profile }}
          >
            <code>{profile}</code>
          </Link>
        ),
    },
    {
      key: 'devices',
      title: t('pushes.devices'),
      isNumber: true,
      cell: ({ devices }) => formatCount(devices),
    },
    {
      key: 'state',
      title: t('pushes.state'),
      isWide: true,
      cell: ({ problem }) =>
        problem === null ? (
          <Badge tone="good">{t('moveIn.served')}</Badge>
        ) : (
          <>
            <Badge tone="bad">{t('moveIn.unserved')}</Badge> <span lang="en">{problem}</span>
          </>
        ),
    },
  ];
  return (
    <Table
      label={t('moveIn.gateways')}
      columns={columns}
      rows={gateways}
      keyOf={({ connector, profile, problem }) => `${connector}/${profile}/${problem}`}
    />
  );
}

type Classes = NonNullable<MoveInState['lastImport']>['classes'];
type Row = Classes[string] & { name: string };

/** Imported records by class. */
function ImportedClasses({ classes }: { classes: Classes }) {
  const { t } = useTranslation();
  const numbers = ['read', 'imported', 'alreadyThere', 'newerInFile', 'refused'] as const;
  const columns: Column<Row>[] = [
    { key: 'name', title: t('moveIn.class'), cell: ({ name }) => <code>{name}</code> },
    ...numbers.map((name) => ({
      key: name,
      title: t(`moveIn.records.${name}`),
      isNumber: true,
      cell: (row: Row) => formatCount(row[name]),
    })),
  ];
  const rows = Object.entries(classes).map(([name, counts]) => ({ name, ...counts }));
  return (
    <Table
      label={t('moveIn.lastImport')}
      columns={columns}
      rows={rows}
      keyOf={({ name }) => name}
    />
  );
}
