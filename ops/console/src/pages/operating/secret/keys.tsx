import { useTranslation } from 'react-i18next';
import type { SecretState } from '../../../../../client/operations.ts';
import { Badge } from '../../../kit/data/badge.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './secret.module.css';

type Key = SecretState['keys'][number];

/** Keys by their ids: which one encrypts, how many values are under each, and whether it may be removed. */
export function Keys({ state: { keys } }: { state: SecretState }) {
  const { t } = useTranslation();
  const columns: Column<Key>[] = [
    { key: 'id', title: t('secret.key'), cell: ({ id }) => <code>{id}</code> },
    {
      key: 'use',
      title: t('secret.use'),
      isWide: true,
      cell: ({ isFirst }) => t(isFirst ? 'secret.encrypts' : 'secret.decrypts'),
    },
    { key: 'values', title: t('secret.valuesOf'), isNumber: true, cell: ({ values }) => sumOf(values) },
    { key: 'removal', title: t('secret.removal'), cell: (key) => <Removal of={key} /> },
  ];
  return (
    <>
      <Table label={t('secret.keys')} columns={columns} rows={keys} keyOf={({ id }) => id} />
      {keys.length === 1 && <p className={styles.note}>{t('secret.oneKey')}</p>}
    </>
  );
}

const sumOf = (values: Key['values']): string =>
  values === null ? '–' : formatCount(Object.values(values).reduce((sum, n) => sum + n, 0));

function Removal({ of: { isFirst, mayBeRemoved } }: { of: Key }) {
  const { t } = useTranslation();
  if (isFirst) return '–';
  return (
    <Badge tone={mayBeRemoved ? 'good' : 'idle'}>{t(mayBeRemoved ? 'secret.mayGo' : 'secret.needed')}</Badge>
  );
}
