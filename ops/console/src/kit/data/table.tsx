import type { TFunction } from 'i18next';
import type { ReactNode } from 'react';
import selectionStyles from './selection.module.css';
import styles from './table.module.css';

export interface Column<T> {
  key: string;
  title: string;
  /** True to align right, for numbers. */
  isNumber?: boolean;
  /** True to use the remaining width. */
  isWide?: boolean;
  cell(row: T): ReactNode;
}

/**
 * Table. On a phone each row is a card that shows the column titles next to the values, so that
 * nothing is off the screen. On other narrow screens the table scrolls horizontally.
 */
export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}) {
  const classOf = ({ isNumber, isWide }: Column<T>) =>
    isNumber ? styles.number : isWide ? styles.wide : undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.key} className={classOf(column)} data-title={column.title}>
                  <div className={styles.cell}>{column.cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

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
        className={selectionStyles.box}
        aria-label={label(row)}
        checked={selected.has(row.objectId)}
        onChange={() => toggle(row.objectId)}
      />
    ),
  };
}
