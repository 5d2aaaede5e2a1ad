import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { AuditEntry, ConsoleSession, ConsoleToken } from '../../../../client/operations.ts';
import { useRemove, useSessions, useTokens } from '../../api/access.ts';
import { useAppNames } from '../../api/apps.ts';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { toCsv } from '../../kit/data/csv.ts';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { NewToken } from './new-token.tsx';

const route = getRouteApi('/people');

/** Access to the admin API: tokens of people and machines, and browser sessions. */
export function People() {
  const { t } = useTranslation();
  return (
    <>
      <PageHeader title={t('nav.people')} side={<NewToken />} />
      <Panel title={t('people.tokens')}>
        <Tokens />
      </Panel>
      <Panel title={t('people.sessions')}>
        <Sessions />
      </Panel>
      <Panel title={t('people.link')}>
        <Snippet label={t('people.linkHint')} text="npx carillon login-link" />
      </Panel>
      <Commands request={requestOf('listConsoleTokens')} command="token list" />
    </>
  );
}

/** Returns the columns that the tables of tokens and sessions have in common. */
function useHolderColumns<T extends Pick<ConsoleToken, 'name' | 'role' | 'apps'>>(
  holders: readonly T[] = [],
): Column<T>[] {
  const { t } = useTranslation();
  const nameOf = useAppNames(holders.flatMap(({ apps }) => apps ?? []));
  return [
    {
      key: 'name',
      title: t('people.name'),
      isWide: true,
      cell: ({ name }) => <span translate="no">{name}</span>,
    },
    { key: 'role', title: t('people.role'), cell: ({ role }) => t(`role.${role}`) },
    {
      key: 'apps',
      title: t('nav.apps'),
      cell: ({ apps }) => (apps === null ? t('people.allApps') : apps.map(nameOf).join(', ')),
    },
  ];
}

function Tokens() {
  const { t } = useTranslation();
  const { tokens: cursor } = route.useSearch();
  const navigate = useNavigate();
  const { data, error, isPending, refetch } = useTokens(cursor);
  const holder = useHolderColumns<ConsoleToken>(data?.results);
  const remove = useRemove('tokens');
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && cursor === undefined)
    return (
      <Empty title={t('people.noTokens')}>
        <p>{t('people.noTokensHint')}</p>
      </Empty>
    );
  const columns: Column<ConsoleToken>[] = [
    ...holder,
    {
      key: 'by',
      title: t('people.createdBy'),
      cell: ({ createdBy, mail }) => (
        <span translate="no">{mail === null ? createdBy : `${createdBy}: ${mail}`}</span>
      ),
    },
    {
      key: 'created',
      title: t('people.created'),
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
    {
      key: 'expires',
      title: t('people.expires'),
      cell: ({ expiresAt }) => (expiresAt === null ? t('people.never') : <Time at={expiresAt} />),
    },
    { key: 'used', title: t('people.used'), cell: ({ usedAt }) => <Time at={usedAt} /> },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: ({ id, name }) => (
        <Confirm
          trigger={t('people.revoke')}
          label={t('people.revokeOf', { name })}
          title={t('people.revokeTitle', { name })}
          action={t('people.revokeNow')}
          onConfirm={() => remove.mutate(id)}
        >
          {t('people.revokeText')}
        </Confirm>
      ),
    },
  ];
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <Table
        label={t('people.tokens')}
        columns={columns}
        rows={data.results}
        keyOf={({ id }) => id}
      />
      <Pager
        next={data.next}
        cursor={cursor}
        open={(next) => void navigate({ to: '/people', search: { tokens: next } })}
      />
    </>
  );
}

function Sessions() {
  const { t } = useTranslation();
  const { sessions: cursor } = route.useSearch();
  const navigate = useNavigate();
  const { data, error, isPending, refetch } = useSessions(cursor);
  const holder = useHolderColumns<ConsoleSession>(data?.results);
  const remove = useRemove('sessions');
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0 && cursor === undefined)
    return <Empty title={t('people.noSessions')} />;
  const columns: Column<ConsoleSession>[] = [
    ...holder,
    { key: 'address', title: t('people.address'), cell: ({ address }) => <code>{address}</code> },
    {
      key: 'agent',
      title: t('people.agent'),
      cell: ({ agent }) => <span translate="no">{browserOf(agent)}</span>,
    },
    { key: 'created', title: t('people.login'), cell: ({ createdAt }) => <Time at={createdAt} /> },
    { key: 'seen', title: t('people.seen'), cell: ({ seenAt }) => <Time at={seenAt} /> },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: ({ id, name }) => (
        <Confirm
          trigger={t('people.end')}
          label={t('people.endOf', { name })}
          title={t('people.endTitle', { name })}
          action={t('people.endNow')}
          onConfirm={() => remove.mutate(id)}
        >
          {t('people.endText')}
        </Confirm>
      ),
    },
  ];
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <Table
        label={t('people.sessions')}
        columns={columns}
        rows={data.results}
        keyOf={({ id }) => id}
      />
      <Pager
        next={data.next}
        cursor={cursor}
        open={(next) => void navigate({ to: '/people', search: { sessions: next } })}
      />
    </>
  );
}

/** Returns the browser and operating system in a `User-Agent`, shortened. */
function browserOf(agent: string): string {
  const browser =
    /(Edg|OPR|Firefox|Chrome|HeadlessChrome|Safari)\/[\d.]+/.exec(agent)?.[0] ?? agent.slice(0, 40);
  const system = /\(([^;)]+)/.exec(agent)?.[1];
  return system === undefined ? browser : `${browser} · ${system}`;
}

/** Changed member. `before` is undefined if it was added, `after` if it was removed. */
export interface MemberChange {
  path: string;
  before: string | undefined;
  after: string | undefined;
}

type Members = AuditEntry['before'];

/** Returns the members that differ before and after a change, by path. */
export function changesOf({ before, after }: Pick<AuditEntry, 'before' | 'after'>): MemberChange[] {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((path) => ({ path, before: old.get(path), after: now.get(path) }))
    .filter((change) => change.before !== change.after || change.before === '"•••"');
}

/** Returns the leaf members as JSON, by path. */
function leavesOf(members: Members | unknown, path = ''): Map<string, string> {
  if (members === null && path === '') return new Map();
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    return new Map([[path, JSON.stringify(members)]]);
  const entries = Object.entries(members);
  if (entries.length === 0) return path === '' ? new Map() : new Map([[path, '{}']]);
  return new Map(
    entries.flatMap(([name, value]) => [
      ...leavesOf(value, path === '' ? name : `${path}.${name}`),
    ]),
  );
}

const columns = [
  'id',
  'at',
  'name',
  'role',
  'address',
  'action',
  'appId',
  'target',
  'before',
  'after',
  'requestId',
];

/** Formats entries as CSV with a heading line. */
export function auditCsv(entries: readonly AuditEntry[]): string {
  const rows = entries.map(({ id, at, actor, action, appId, target, before, after, requestId }) => [
    ...[id, at, actor.name, actor.role, actor.address, action, appId ?? '', target],
    ...[before, after].map((members) => (members === null ? '' : JSON.stringify(members))),
    requestId,
  ]);
  return toCsv([columns, ...rows]);
}

/** Formats entries as JSON lines. */
export const toJsonLines = (entries: readonly AuditEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
