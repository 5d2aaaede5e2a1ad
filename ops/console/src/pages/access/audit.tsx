import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { AuditEntry } from '../../../../client/operations.ts';
import { auditPage, readAudit, useAudit } from '../../api/access.ts';
import { maxExported, useAppNames } from '../../api/apps.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Download } from '../../kit/controls/files.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { activeFilters, FoldedSearch } from '../../kit/form/filter-form.tsx';
import { isoTime, localTime } from '../../kit/form/values.ts';
import { PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { AuditFilters, AuditFilters as Filters } from '../../search.ts';
import { formatCount } from '../../text/format.ts';
import styles from './access.module.css';
import { AppChoice } from './new-token.tsx';
import { auditCsv, changesOf, toJsonLines } from './people.tsx';

const route = getRouteApi('/audit');

/** Audit log: changes made through the admin API. The URL contains the filters and the page. */
export function Audit() {
  const { t } = useTranslation();
  const filters = route.useSearch();
  const navigate = useNavigate();
  const change = (more: Filters) =>
    void navigate({ to: '/audit', search: { ...filters, cursor: undefined, ...more } });
  return (
    <>
      <PageHeader title={t('nav.audit')} side={<AuditExport filters={filters} />} />
      <AuditFilterForm filters={filters} change={change} />
      <Panel title={t('audit.list')}>
        <Entries filters={filters} change={change} />
      </Panel>
      <Commands
        request={requestOf('listAudit', auditPage(filters))}
        command={`audit${argumentsOf(filters)}`}
      />
    </>
  );
}

const argumentsOf = (filters: Filters): string =>
  Object.entries(filters)
    .flatMap(([name, value]) => (value === undefined ? [] : [` --${name} '${value}'`]))
    .join('');

function Entries({ filters, change }: { filters: Filters; change: (more: Filters) => void }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useAudit(filters);
  const nameOf = useAppNames(data?.results.map(({ appId }) => appId) ?? []);
  if (isPending) return <Loading rows={8} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  if (data.results.length === 0)
    return (
      <Empty title={t(isFiltered ? 'audit.noMatch' : 'audit.empty')}>
        {isFiltered ? (
          <Button onClick={() => change(noFilters)}>{t('action.clearFilters')}</Button>
        ) : (
          <p>{t('audit.kept')}</p>
        )}
      </Empty>
    );
  const columns: Column<AuditEntry>[] = [
    { key: 'at', title: t('audit.time'), cell: ({ at }) => <Time at={at} /> },
    { key: 'who', title: t('audit.who'), cell: ({ actor }) => <Who actor={actor} /> },
    { key: 'action', title: t('audit.actionTitle'), cell: ({ action }) => <code>{action}</code> },
    {
      key: 'app',
      title: t('people.app'),
      cell: ({ appId }) => <span translate="no">{appId === null ? '–' : nameOf(appId)}</span>,
    },
    { key: 'target', title: t('audit.targetTitle'), cell: (entry) => <Target entry={entry} /> },
    {
      key: 'change',
      title: t('audit.change'),
      isWide: true,
      cell: (entry) => <Changes entry={entry} />,
    },
  ];
  return (
    <>
      <Table label={t('audit.list')} columns={columns} rows={data.results} keyOf={({ id }) => id} />
      <Pager next={data.next} cursor={filters.cursor} open={(cursor) => change({ cursor })} />
    </>
  );
}

const noFilters = {
  app: undefined,
  actor: undefined,
  action: undefined,
  target: undefined,
  from: undefined,
  to: undefined,
};

/** Changed object. A push is a link to its page. */
function Target({ entry: { action, appId, target } }: { entry: AuditEntry }) {
  const isPush = /^push\.(?!explain|read)/.test(action) && /^[A-Za-z0-9]{16}$/.test(target);
  if (!isPush || appId === null) return <code>{target}</code>;
  return (
    <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: target }}>
      <code>{target}</code>
    </Link>
  );
}

function Who({ actor: { name, role, address } }: Pick<AuditEntry, 'actor'>) {
  const { t } = useTranslation();
  return (
    <span className={styles.who}>
      <span translate="no">{name}</span>
      <span className={styles.note}>
        {t(`role.${role}`)} · {address}
      </span>
    </span>
  );
}

/** Changed members: the old value struck through, followed by the new value. */
function Changes({ entry }: { entry: AuditEntry }) {
  const { t } = useTranslation();
  const changes = changesOf(entry);
  if (changes.length === 0) return <span className={styles.note}>{t('audit.noChange')}</span>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <ul className={styles.changes} tabIndex={0}>
      {changes.map(({ path, before, after }) => (
        <li key={path}>
          <code>{path}</code>{' '}
          {before !== undefined && (
            <del className={styles.before} title={t('audit.removed')}>
              <code>{before}</code>
            </del>
          )}
          {before !== undefined && after !== undefined && ' → '}
          {after !== undefined && (
            <ins className={styles.after} title={t('audit.added')}>
              <code>{after}</code>
            </ins>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Buttons that save the matching audit entries as a file. */
function AuditExport({ filters }: { filters: AuditFilters }) {
  const { t } = useTranslation();
  const hint = t('action.exportHint', { most: formatCount(maxExported) });
  return (
    <>
      <Download
        label={t('audit.exportLines')}
        hint={hint}
        name="audit.jsonl"
        type="application/x-ndjson"
        load={async () => toJsonLines(await readAudit(filters))}
      />
      <Download
        label={t('action.exportCsv')}
        hint={hint}
        name="audit.csv"
        load={async () => auditCsv(await readAudit(filters))}
      />
    </>
  );
}

const texts = ['actor', 'action', 'target'] as const;
const times = ['from', 'to'] as const;

interface FiltersProps {
  filters: Filters;
  change: (more: Filters) => void;
}

/** Filters of the audit log. The app filter applies immediately, the others on Enter. */
export function AuditFilterForm({ filters, change }: FiltersProps) {
  const { t } = useTranslation();
  const { actor = '', action = '', target = '', from, to } = filters;
  const applied = { actor, action, target, from: localTime(from), to: localTime(to) };
  const [draft, setDraft] = useState(applied);
  // Another address, for example by "Clear the filters", replaces the inputs.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the object is another in each render.
  useEffect(() => setDraft(applied), [actor, action, target, from, to]);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const { from, to, ...others } = draft;
    const given = Object.fromEntries(texts.map((name) => [name, others[name].trim() || undefined]));
    change({ ...given, from: isoTime(from), to: isoTime(to) });
  };
  return (
    <FoldedSearch active={activeFilters(filters)}>
      <form className={styles.filters} onSubmit={onSubmit}>
        <AppChoice
          any={t('audit.anyApp')}
          value={filters.app ?? ''}
          change={(app) => change({ app: app || undefined })}
        />
        {texts.map((name) => (
          <TextField
            key={name}
            type="search"
            label={t(`audit.${name}`)}
            placeholder={t(`audit.${name}Hint`)}
            value={draft[name]}
            onChange={(event) => setDraft({ ...draft, [name]: event.target.value })}
          />
        ))}
        {times.map((name) => (
          <TextField
            key={name}
            type="datetime-local"
            label={t(`audit.${name}`)}
            value={draft[name]}
            onChange={(event) => setDraft({ ...draft, [name]: event.target.value })}
          />
        ))}
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </FoldedSearch>
  );
}
