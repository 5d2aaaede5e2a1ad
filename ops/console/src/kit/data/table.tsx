import type { ReactNode } from 'react';
import styles from './table.module.css';

export interface Column<T> {
  key: string;
  title: string;
  /** Numbers stand at the right. */
  isNumber?: boolean;
  /** Takes the room that is left. */
  isWide?: boolean;
  cell(row: T): ReactNode;
}

/**
 * Table of rows. On a phone each row is a card with the title of the column before each value, so
 * that nothing, such as a button, is outside of the screen. On other narrow screens the table
 * scrolls sideways in its own box.
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
