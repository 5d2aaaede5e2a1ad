import { useTranslation } from 'react-i18next';
import type { SecretState } from '../../../../../client/operations.ts';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Time } from '../../../kit/data/time.tsx';
import { Empty } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './secret.module.css';

/** Numbers of values by column of the database and key, as they were counted last. */
export function Values({ state: { keys, other, countedAt } }: { state: SecretState }) {
  const { t } = useTranslation();
  if (countedAt === null)
    return (
      <Empty title={t('secret.notCounted')}>
        <p>{t('secret.notCountedHint')}</p>
      </Empty>
    );
  const groups = [
    ...keys.map(({ id, values }) => ({ id, title: id, values: values ?? {} })),
    { id: 'other', title: t('secret.other'), values: other ?? {} },
  ];
  const places = [...new Set(groups.flatMap(({ values }) => Object.keys(values)))].sort();
  const columns: Column<string>[] = [
    { key: 'place', title: t('secret.place'), isWide: true, cell: (place) => <code>{place}</code> },
    ...groups.map(({ id, title, values }) => ({
      key: id,
      title,
      isNumber: true,
      cell: (place: string) => formatCount(values[place] ?? 0),
    })),
  ];
  return (
    <>
      <Table label={t('secret.values')} columns={columns} rows={places} keyOf={(place) => place} />
      <p className={styles.note}>
        {t('secret.countedAt')} <Time at={countedAt} />
      </p>
    </>
  );
}
