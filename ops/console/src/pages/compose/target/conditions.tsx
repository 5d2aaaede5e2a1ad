import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import { printJson } from '../../../draft/json-text.ts';
import { knownMembers, newRow, type Row, type Rows } from '../../../draft/rows.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { useForm, useRefusalAt } from '../draft-field.tsx';
import { ConditionRow } from './condition-row.tsx';
import styles from './target.module.css';
import { useRows } from './use-rows.ts';

/** The condition as rows; as JSON where rows cannot show it. */
export function Conditions({ setIncomplete }: { setIncomplete: (isIncomplete: boolean) => void }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { rows, change } = useRows(setIncomplete);
  const error = useRefusalAt(['where']);
  const membersId = useId();
  return (
    <div className={styles.conditions}>
      {rows ? (
        <>
          <RowList rows={rows.all} membersId={membersId} change={(all) => change({ ...rows, all })} />
          {rows.any.length > 0 && <Groups rows={rows} membersId={membersId} change={change} />}
          <div className={styles.adding}>
            <Button onClick={() => change({ ...rows, all: [...rows.all, newRow()] })}>
              {t('compose.addRow')}
            </Button>
            <Button onClick={() => change({ ...rows, any: [...rows.any, [newRow()]] })}>
              {t('compose.addGroup')}
            </Button>
          </div>
        </>
      ) : (
        <>
          <p className={styles.note}>{t('compose.whereInJson')}</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
          <pre className={styles.json} tabIndex={0}>
            {printJson(draft.body.where ?? {}, 2)}
          </pre>
        </>
      )}
      {error && <p className={styles.error}>{error}</p>}
      <datalist id={membersId}>
        {knownMembers.map((member) => (
          <option key={member} value={member} />
        ))}
      </datalist>
    </div>
  );
}

interface RowListProps {
  rows: readonly Row[];
  membersId: string;
  change: (rows: Row[]) => void;
}

function RowList({ rows, membersId, change }: RowListProps) {
  if (rows.length === 0) return null;
  return (
    <ul className={styles.rows}>
      {rows.map((row) => (
        <ConditionRow
          key={row.id}
          row={row}
          membersId={membersId}
          change={(next) => change(rows.map((one) => (one.id === row.id ? next : one)))}
          remove={() => change(rows.filter((one) => one.id !== row.id))}
        />
      ))}
    </ul>
  );
}

/** Groups of rows, of which one must hold. */
function Groups({
  rows,
  membersId,
  change,
}: {
  rows: Rows;
  membersId: string;
  change: (rows: Rows) => void;
}) {
  const { t } = useTranslation();
  const set = (at: number, group: Row[]) =>
    change({
      ...rows,
      any: rows.any.map((one, index) => (index === at ? group : one)).filter((one) => one.length > 0),
    });
  return (
    <fieldset className={styles.groups}>
      <legend>{t('compose.oneOf')}</legend>
      {rows.any.map((group, at) => (
        <div key={group[0]?.id ?? at} className={styles.group}>
          <RowList rows={group} membersId={membersId} change={(next) => set(at, next)} />
          <Button look="quiet" onClick={() => set(at, [...group, newRow()])}>
            {t('compose.addRow')}
          </Button>
        </div>
      ))}
    </fieldset>
  );
}
