import { useTranslation } from 'react-i18next';
import { kindOfMember, type Row, type ValueKind, valueKinds } from '../../../draft/rows.ts';
import { type Comparison, comparisons, takesList } from '../../../draft/where.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice, TextField } from '../../../kit/controls/field.tsx';
import styles from './target.module.css';

interface ConditionRowProps {
  row: Row;
  /** Id of the list of members to suggest. */
  membersId: string;
  /** How many devices there are without this row. */
  note?: string | undefined;
  change: (row: Row) => void;
  remove: () => void;
}

/** One row: member, comparison, kind and value. */
export function ConditionRow({ row, membersId, note, change, remove }: ConditionRowProps) {
  const { t } = useTranslation();
  const setMember = (member: string) =>
    change({ ...row, member, kind: kindOfMember(member) ?? (row.text === '' ? 'text' : row.kind) });
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
        disabled={row.fixed !== undefined || row.comparison === 'exists' || row.comparison === 'matches'}
        onChange={(event) => change({ ...row, kind: kindNamed(event.target.value), text: '' })}
      >
        {valueKinds.map((kind) => (
          <option key={kind} value={kind}>
            {t(`valueKind.${kind}`)}
          </option>
        ))}
      </Choice>
      <ValueField row={row} change={change} />
      <Button look="quiet" onClick={remove} aria-label={t('compose.removeRow', { member: row.member })}>
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
  return { ...row, comparison, ...(isSwitch ? { text: comparison === 'exists' ? 'true' : '' } : {}) };
}

function ValueField({ row, change }: { row: Row; change: (row: Row) => void }) {
  const { t } = useTranslation();
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
  return (
    <TextField
      isCompact
      label={label}
      placeholder={t(isList ? 'compose.values' : 'compose.value')}
      type={row.kind === 'date' && !isList && row.fixed === undefined ? 'datetime-local' : 'text'}
      value={row.text}
      disabled={row.fixed !== undefined}
      onChange={(event) => change({ ...row, text: event.target.value })}
    />
  );
}
