import { type ReactNode, useEffect, useId, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Audience, SampledField } from '../../../../../client/operations.ts';
import { useFields } from '../../../api/devices.ts';
import {
  canonicalText,
  isRecord,
  isSameJson,
  type JsonRecord,
  type JsonValue,
  parseJsonText,
  printJson,
  withValueAt,
} from '../../../draft/json-text.ts';
import {
  conditionOf,
  hasIncomplete,
  kindOfMember,
  knownMembers,
  newRow,
  partOf,
  type Row,
  type Rows,
  rowsOf,
  type ValueKind,
  valueKinds,
} from '../../../draft/rows.ts';
import {
  type Comparison,
  comparisons,
  readCondition,
  takesList,
  withoutClauses,
  writeCondition,
} from '../../../draft/where.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice, TextField } from '../../../kit/controls/field.tsx';
import { formatCount } from '../../../text/format.ts';
import { useForm, useRefusalAt } from '../draft-field.tsx';
import styles from './target.module.css';

interface Typed {
  rows: Rows;
  /**
   * Condition that these rows produced. If the body contains a different condition, something else
   * changed it.
   */
  written: JsonValue;
}

/**
 * Returns the rows of the draft's condition and a function that changes them. The rows are
 * undefined if only JSON can express the condition.
 */
function useRows(setIncomplete: (isIncomplete: boolean) => void) {
  const { draft } = useForm();
  const [typed, setTyped] = useState<Typed>();
  const where = printJson(draft.body.where ?? {});
  const read = useMemo(() => {
    const condition = readCondition(parseJsonText(where));
    return condition && rowsOf(condition);
  }, [where]);
  const isOwn = typed !== undefined && isSameJson(typed.written, draft.body.where ?? {});
  const rows = isOwn ? typed.rows : read;
  const isIncomplete = rows !== undefined && hasIncomplete(rows);
  useEffect(() => {
    setIncomplete(isIncomplete);
    return () => setIncomplete(false);
  }, [isIncomplete, setIncomplete]);
  const change = (next: Rows) => {
    const written = writeCondition(conditionOf(next));
    setTyped({ rows: next, written });
    draft.edit((body) => withValueAt(body, ['where'], written));
  };
  return { rows, change };
}

interface ConditionsProps {
  appId: string;
  /** Device counts. Undefined before the first count. */
  audience: Audience | undefined;
  setIncomplete: (isIncomplete: boolean) => void;
  /** Additional controls next to the buttons that add rows. */
  children: ReactNode;
}

/** Condition as rows, or as JSON if rows cannot express it. */
export function Conditions({ appId, audience, setIncomplete, children }: ConditionsProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { rows, change } = useRows(setIncomplete);
  const error = useRefusalAt(['where']);
  const membersId = useId();
  const fields = useFields(appId).data?.results ?? [];
  const noteOf = useNotes(audience);
  const { $or } = isRecord(draft.body.where) ? draft.body.where : {};
  const alternatives = $or === undefined ? undefined : { $or };
  return (
    <div className={styles.conditions}>
      {rows ? (
        <>
          <RowList
            rows={rows.all}
            membersId={membersId}
            fields={fields}
            noteOf={noteOf}
            change={(all) => change({ ...rows, all })}
          />
          {rows.any.length > 0 && (
            <Groups
              rows={rows}
              membersId={membersId}
              fields={fields}
              note={noteOf(alternatives, 'compose.withoutGroups')}
              change={change}
            />
          )}
          <div className={styles.adding}>
            <Button onClick={() => change({ ...rows, all: [...rows.all, newRow()] })}>
              {t('compose.addRow')}
            </Button>
            <Button onClick={() => change({ ...rows, any: [...rows.any, [newRow()]] })}>
              {t('compose.addGroup')}
            </Button>
            {children}
          </div>
        </>
      ) : (
        <>
          <p className={styles.note}>{t('compose.whereInJson')}</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
          <pre className={styles.json} tabIndex={0}>
            {printJson(draft.body.where ?? {}, 2)}
          </pre>
          <div className={styles.adding}>{children}</div>
        </>
      )}
      {error && <p className={styles.error}>{error}</p>}
      <datalist id={membersId}>
        {[...new Set([...fields.map(({ name }) => name), ...knownMembers])].map((member) => (
          <option key={member} value={member} />
        ))}
      </datalist>
    </div>
  );
}

type NoteOf = (part: JsonRecord | undefined, key?: string) => string | undefined;

interface RowListProps {
  rows: readonly Row[];
  membersId: string;
  fields: readonly SampledField[];
  noteOf?: NoteOf;
  change: (rows: Row[]) => void;
}

/** Returns a function that describes the number of devices without a part of the condition. */
function useNotes(audience: Audience | undefined): NoteOf {
  const { t } = useTranslation();
  const counts = withoutClauses(audience?.clauses ?? []);
  return (part, key = 'compose.without') => {
    const without = part && counts.get(canonicalText(part));
    return without === undefined
      ? undefined
      : t(key, { count: without, devices: formatCount(without) });
  };
}

function RowList({ rows, membersId, fields, noteOf, change }: RowListProps) {
  if (rows.length === 0) return null;
  return (
    <ul className={styles.rows}>
      {rows.map((row) => (
        <ConditionRow
          key={row.id}
          row={row}
          membersId={membersId}
          fields={fields}
          note={noteOf?.(partOf(row))}
          change={(next) => change(rows.map((one) => (one.id === row.id ? next : one)))}
          remove={() => change(rows.filter((one) => one.id !== row.id))}
        />
      ))}
    </ul>
  );
}

/** Groups of rows. At least one group must match. */
function Groups({
  rows,
  membersId,
  fields,
  note,
  change,
}: {
  rows: Rows;
  membersId: string;
  fields: readonly SampledField[];
  note: string | undefined;
  change: (rows: Rows) => void;
}) {
  const { t } = useTranslation();
  const set = (at: number, group: Row[]) =>
    change({
      ...rows,
      any: rows.any
        .map((one, index) => (index === at ? group : one))
        .filter((one) => one.length > 0),
    });
  return (
    <fieldset className={styles.groups}>
      <legend>{t('compose.oneOf')}</legend>
      {rows.any.map((group, at) => (
        <div key={group[0]?.id ?? at} className={styles.group}>
          <RowList
            rows={group}
            membersId={membersId}
            fields={fields}
            change={(next) => set(at, next)}
          />
          <Button variant="quiet" onClick={() => set(at, [...group, newRow()])}>
            {t('compose.addRow')}
          </Button>
        </div>
      ))}
      {note !== undefined && <p className={styles.without}>{note}</p>}
    </fieldset>
  );
}

interface ConditionRowProps {
  row: Row;
  /** Id of the datalist with suggested members. */
  membersId: string;
  /** Members of the app's devices, with their values. */
  fields: readonly SampledField[];
  /** Number of devices without this row. */
  note?: string | undefined;
  change: (row: Row) => void;
  remove: () => void;
}

/** Row of the condition: member, comparison, type and value. */
function ConditionRow({ row, membersId, fields, note, change, remove }: ConditionRowProps) {
  const { t } = useTranslation();
  const setMember = (member: string) =>
    change({ ...row, member, kind: kindFor(row, member, fields) });
  return (
    <li className={styles.row}>
      <TextField
        isCompact
        label={t('compose.member')}
        placeholder={t('compose.member')}
        list={membersId}
        value={row.member}
        onChange={(event) => setMember(event.target.value)}
      />
      <Choice
        isCompact
        label={t('compose.comparison')}
        value={row.comparison}
        disabled={row.fixed !== undefined}
        onChange={(event) => change(withComparison(row, event.target.value))}
      >
        {comparisons.map((comparison) => (
          <option key={comparison} value={comparison}>
            {t(`compare.${comparison}`)}
          </option>
        ))}
      </Choice>
      <Choice
        isCompact
        label={t('compose.kind')}
        value={row.kind}
        disabled={
          row.fixed !== undefined || row.comparison === 'exists' || row.comparison === 'matches'
        }
        onChange={(event) => change({ ...row, kind: kindNamed(event.target.value), text: '' })}
      >
        {valueKinds.map((kind) => (
          <option key={kind} value={kind}>
            {t(`valueKind.${kind}`)}
          </option>
        ))}
      </Choice>
      <ValueField row={row} fields={fields} change={change} />
      <Button
        variant="quiet"
        onClick={remove}
        aria-label={t('compose.removeRow', { member: row.member })}
      >
        <span aria-hidden="true">×</span>
      </Button>
      {note !== undefined && <p className={styles.without}>{note}</p>}
    </li>
  );
}

const kindNamed = (name: string): ValueKind => valueKinds.find((kind) => kind === name) ?? 'text';

function withComparison(row: Row, name: string): Row {
  const comparison: Comparison = comparisons.find((one) => one === name) ?? 'is';
  const isSwitch = (comparison === 'exists') !== (row.comparison === 'exists');
  return {
    ...row,
    comparison,
    ...(isSwitch ? { text: comparison === 'exists' ? 'true' : '' } : {}),
  };
}

const kindOfType: Partial<Record<string, ValueKind>> = {
  number: 'number',
  boolean: 'flag',
  date: 'date',
};

/** Returns the type of a member's values. For an unknown member, returns the chosen type. */
function kindFor(row: Row, member: string, fields: readonly SampledField[]): ValueKind {
  const [type] = fields.find(({ name }) => name === member)?.types ?? [];
  const known =
    kindOfMember(member) ??
    (type === undefined ? undefined : (kindOfType[type.toLowerCase()] ?? 'text'));
  return known ?? (row.text === '' ? 'text' : row.kind);
}

interface ValueFieldProps {
  row: Row;
  fields: readonly SampledField[];
  change: (row: Row) => void;
}

function ValueField({ row, fields, change }: ValueFieldProps) {
  const { t } = useTranslation();
  const valuesId = useId();
  const label = t('compose.value');
  if (row.comparison === 'exists' || (row.kind === 'flag' && !takesList(row.comparison)))
    return (
      <Choice
        isCompact
        label={label}
        value={row.text}
        onChange={(event) => change({ ...row, text: event.target.value })}
      >
        {row.comparison !== 'exists' && <option value="">–</option>}
        <option value="true">{t('why.yes')}</option>
        <option value="false">{t('why.no')}</option>
      </Choice>
    );
  const isList = takesList(row.comparison);
  const values = fields.find(({ name }) => name === row.member)?.values ?? [];
  return (
    <div>
      <TextField
        isCompact
        label={label}
        list={valuesId}
        placeholder={t(isList ? 'compose.values' : 'compose.value')}
        type={row.kind === 'date' && !isList && row.fixed === undefined ? 'datetime-local' : 'text'}
        value={row.text}
        disabled={row.fixed !== undefined}
        onChange={(event) => change({ ...row, text: event.target.value })}
      />
      <datalist id={valuesId}>
        {values.map(({ value }) => (
          <option key={String(value)} value={String(value)} />
        ))}
      </datalist>
    </div>
  );
}
