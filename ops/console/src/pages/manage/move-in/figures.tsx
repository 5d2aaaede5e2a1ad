import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { MoveInState } from '../../../../../client/operations.ts';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Bar } from '../../../kit/data/values.tsx';
import { connectorName } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './move-in.module.css';

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
export function ImportedClasses({ classes }: { classes: Classes }) {
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
