import type { TFunction } from 'i18next';
import type { ListedDevice } from '../../api/devices.ts';
import type { Column } from '../../kit/data/table.tsx';
import styles from './devices.module.css';

/** Devices of a page that a person has ticked. */
export interface Selection {
  selected: ReadonlySet<string>;
  select: (selected: ReadonlySet<string>) => void;
}

/** Returns the column of the boxes to tick. */
export function selectionColumn({ selected, select }: Selection, t: TFunction): Column<ListedDevice> {
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  return {
    key: 'select',
    title: t('devices.select'),
    cell: ({ objectId }) => (
      <input
        type="checkbox"
        className={styles.box}
        aria-label={t('devices.selectOne', { id: objectId })}
        checked={selected.has(objectId)}
        onChange={() => toggle(objectId)}
      />
    ),
  };
}
