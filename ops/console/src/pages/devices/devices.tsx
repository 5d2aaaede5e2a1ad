import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { Installation } from '../../../../client/operations.ts';
import { useAudience } from '../../api/compose.ts';
import { devicesPage, useDevices } from '../../api/devices.ts';
import { useMay } from '../../api/session.tsx';
import {
  isRecord,
  type JsonRecord,
  JsonTextError,
  type JsonValue,
  parseJsonText,
  printJson,
} from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Commands, Snippet } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, type Selection, selectionColumn, Table } from '../../kit/data/table.tsx';
import { Badge, Time } from '../../kit/data/values.tsx';
import { FilterForm, FilterText, useFilterText } from '../../kit/form/filter-form.tsx';
import { FoldedPanel, PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import type { DeviceFilters } from '../../search.ts';
import { FormProvider } from '../compose/draft-field.tsx';
import { countDelayMs, type Draft, useDebounced } from '../compose/draft-state.ts';
import { Conditions } from '../compose/target/conditions.tsx';
import { Bulk } from './bulk.tsx';
import { ColumnChoice, titleOf, useColumnNames } from './columns.tsx';

const route = getRouteApi('/apps/$appId/devices');

/** Devices of an app, newest first. They can be searched by id or condition. */
export function Devices() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const filters = route.useSearch();
  const navigate = useNavigate();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [columns, chooseColumns] = useColumnNames();
  const change = (search: DeviceFilters) => {
    setSelected(new Set());
    void navigate({ to: '/apps/$appId/devices', params: { appId }, search });
  };
  return (
    <>
      <PageHeader title={t('nav.devices')} />
      <Filters key={filters.where ?? ''} appId={appId} filters={filters} change={change} />
      <Panel
        title={t('devices.list')}
        side={
          <>
            <ColumnChoice appId={appId} chosen={columns} choose={chooseColumns} />
            <Bulk {...{ appId, filters, selected }} clear={() => setSelected(new Set())} />
          </>
        }
      >
        <DeviceTable {...{ appId, filters, change, selected, columns }} select={setSelected} />
      </Panel>
      <Commands
        request={requestOf('listAppInstallations', devicesPage(appId, filters))}
        command={`devices --app ${appId}`}
      />
    </>
  );
}

/** Search by id, and the condition builder of the composer. */
function Filters({ appId, filters, change }: FiltersProps & { appId: string }) {
  const { t } = useTranslation();
  const [query, setQuery] = useFilterText(filters.q);
  const draft = useConditionDraft(filters.where);
  const [isIncomplete, setIncomplete] = useState(false);
  const where = isRecord(draft.body.where) ? draft.body.where : {};
  const text = Object.keys(where).length === 0 ? undefined : printJson(where);
  const counted = useDebounced(printJson({ where, clauses: true }), countDelayMs);
  const audience = useAudience(appId, text === undefined ? undefined : counted);
  const apply = () => change({ q: query.trim() || undefined, where: text });
  return (
    <>
      <FilterForm apply={apply}>
        <FilterText label={t('devices.search')} value={query} change={setQuery} />
      </FilterForm>
      <FoldedPanel
        title={t('push.condition')}
        side={<ShownSummary where={filters.where} />}
        isOpen={filters.where !== undefined}
      >
        <FormProvider value={{ appId, draft, refusal: undefined }}>
          <Conditions
            appId={appId}
            audience={text === undefined ? undefined : audience.data}
            setIncomplete={setIncomplete}
          >
            <Button variant="primary" disabled={isIncomplete} onClick={apply}>
              {t('devices.apply')}
            </Button>
            {filters.where !== undefined && (
              <Button onClick={() => change({ q: filters.q })}>{t('action.clearFilters')}</Button>
            )}
          </Conditions>
          <JsonCondition draft={draft} apply={apply} />
        </FormProvider>
      </FoldedPanel>
    </>
  );
}

/** Condition as JSON, for conditions that rows cannot express. Enter applies it. */
function JsonCondition({ draft, apply }: { draft: Draft; apply: () => void }) {
  const { t } = useTranslation();
  const written = printJson(draft.body.where ?? {});
  const [typed, setTyped] = useState<string>();
  const isFaulty = typed !== undefined;
  const change = (text: string) => {
    const where = parsedOrUndefined(text);
    setTyped(isRecord(where) ? undefined : text);
    if (isRecord(where)) draft.edit((body) => ({ ...body, where }));
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!isFaulty) apply();
  };
  return (
    <form onSubmit={onSubmit}>
      <TextField
        label={t('devices.where')}
        error={isFaulty ? t('devices.badWhere') : undefined}
        spellCheck={false}
        value={typed ?? (written === '{}' ? '' : written)}
        onChange={(event) => change(event.target.value || '{}')}
      />
    </form>
  );
}

/** Condition of the list in words. */
function ShownSummary({ where }: { where: string | undefined }) {
  const { t } = useTranslation();
  const read = conditionIn(where);
  const count = Object.keys(read).length;
  return <>{count === 0 ? t('compose.audienceAll') : t('devices.conditions', { count })}</>;
}

/** Draft that has only a condition, for the builder of the composer. */
function useConditionDraft(where: string | undefined): Draft {
  const [body, setBody] = useState<JsonRecord>(() => ({ where: conditionIn(where) }));
  return {
    body,
    text: '',
    fault: undefined,
    sent: undefined,
    setText: () => undefined,
    edit: (change) => setBody(change),
    clear: () => setBody({ where: {} }),
  };
}

/** Returns the condition of an address. Without a valid one, returns an empty condition. */
function conditionIn(text: string | undefined): JsonRecord {
  const read = parsedOrUndefined(text ?? '{}');
  return isRecord(read) ? read : {};
}

function parsedOrUndefined(text: string): JsonValue | undefined {
  try {
    return parseJsonText(text);
  } catch (error) {
    if (error instanceof JsonTextError) return undefined;
    throw error;
  }
}

interface FiltersProps {
  filters: DeviceFilters;
  change: (filters: DeviceFilters) => void;
}

interface DeviceTableProps extends FiltersProps, Selection {
  appId: string;
  /** Chosen columns, in their order. */
  columns: readonly string[];
}

function DeviceTable({ appId, filters, change, columns, ...selection }: DeviceTableProps) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useDevices(appId, filters);
  const mayChange = useMay('operator');
  if (isPending) return <Loading rows={8} />;
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  const labelOf = ({ objectId }: Installation) => t('devices.selectOne', { id: objectId });
  const isFiltered = filters.q !== undefined || filters.where !== undefined;
  if (data.results.length === 0 && filters.cursor === undefined)
    return (
      <Empty title={t(isFiltered ? 'devices.noMatch' : 'devices.empty')}>
        {isFiltered ? (
          <Button onClick={() => change({})}>{t('action.clearFilters')}</Button>
        ) : (
          <>
            <p>{t('devices.emptyHint')}</p>
            <Snippet label="curl" text={registration(appId)} />
          </>
        )}
      </Empty>
    );
  return (
    <>
      <Table
        label={t('devices.list')}
        columns={[
          ...(mayChange ? [selectionColumn(selection, labelOf, t)] : []),
          ...columnsOf(appId, columns, t),
        ]}
        rows={data.results}
        keyOf={({ objectId }) => objectId}
      />
      <Pager
        next={data.next}
        cursor={filters.cursor}
        open={(cursor) => change({ ...filters, cursor })}
      />
    </>
  );
}

const registration = (appId: string): string =>
  `curl ${window.location.origin}/1.1/installations -H 'X-LC-Id: ${appId}' -H "X-LC-Key: $APP_KEY" \\\n  -H 'Content-Type: application/json' -d '{"deviceType":"ios","deviceToken":"…"}'`;

function columnsOf(
  appId: string,
  chosen: readonly string[],
  t: (key: string) => string,
): Column<Installation>[] {
  const id: Column<Installation> = {
    key: 'id',
    title: t('devices.id'),
    cell: ({ objectId }) => (
      <Link to="/apps/$appId/devices/$deviceId" params={{ appId, deviceId: objectId }}>
        <code>{objectId}</code>
      </Link>
    ),
  };
  return [
    id,
    ...chosen.map((name) => ({
      key: name,
      title: titleOf(name, t),
      cell: (device: Installation) => <Member name={name} device={device} />,
    })),
  ];
}

/** Value of a column. */
function Member({ name, device }: { name: string; device: Installation }) {
  const { t } = useTranslation();
  const { deviceType, vendor, channels = [], valid } = device;
  if (name === 'deviceType') return vendor ? `${deviceType} · ${vendor}` : deviceType;
  if (name === 'channels') return channels.join(', ') || '–';
  if (name === 'valid')
    return (
      <Badge tone={valid === false ? 'bad' : 'good'}>
        {t(valid === false ? 'why.no' : 'why.yes')}
      </Badge>
    );
  if (name === 'updatedAt' || name === 'createdAt') return <Time at={device[name]} />;
  const members: Record<string, unknown> = { ...device };
  const value = members[name];
  if (value === undefined || value === null) return '–';
  return (
    <span translate="no">{typeof value === 'object' ? JSON.stringify(value) : String(value)}</span>
  );
}
