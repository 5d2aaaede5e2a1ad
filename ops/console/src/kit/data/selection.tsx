import type { TFunction } from 'i18next';
import styles from './selection.module.css';
import type { Column } from './table.tsx';

/** Rows that a person has selected, by their keys. */
export interface Selection {
  selected: ReadonlySet<string>;
  select: (selected: ReadonlySet<string>) => void;
}

/** Returns the column of checkboxes. `label` returns the name of a row's checkbox. */
export function selectionColumn<T extends { objectId: string }>(
  { selected, select }: Selection,
  label: (row: T) => string,
  t: TFunction,
): Column<T> {
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  return {
    key: 'select',
    title: t('devices.select'),
    cell: (row) => (
      <input
        type="checkbox"
        className={styles.box}
        aria-label={label(row)}
        checked={selected.has(row.objectId)}
        onChange={() => toggle(row.objectId)}
      />
    ),
  };
}
