import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import type { SampledField } from '../../../../../client/operations.ts';
import { kindOfMember, type Row, type ValueKind, valueKinds } from '../../../draft/rows.ts';
import { type Comparison, comparisons, takesList } from '../../../draft/where.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice, TextField } from '../../../kit/controls/field.tsx';
import styles from './target.module.css';

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
export function ConditionRow({ row, membersId, fields, note, change, remove }: ConditionRowProps) {
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
