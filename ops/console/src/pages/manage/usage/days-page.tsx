import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Days } from '../../../api/apps.ts';
import { TextField } from '../../../kit/controls/field.tsx';
import { PageHeader } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import styles from './usage.module.css';

interface DaysPageProps<T> {
  title: string;
  days: Days;
  onChange: (change: Partial<Days>) => void;
  query: { data: T | undefined; error: Error | null; refetch: () => Promise<unknown> };
  /** Returns the report of the days. */
  children: (data: T) => ReactNode;
}

/** Page with a report of days in UTC, which the reader chooses. */
export function DaysPage<T>({ title, days, onChange, query, children }: DaysPageProps<T>) {
  const { t } = useTranslation();
  const { data, error, refetch } = query;
  const field = (name: keyof Days, limit: { min?: string; max?: string }) => (
    <TextField
      type="date"
      label={t(`usage.${name}`)}
      value={days[name]}
      {...limit}
      onChange={(event) => event.target.value && onChange({ [name]: event.target.value })}
    />
  );
  return (
    <>
      <PageHeader title={title} />
      <div className={styles.days}>
        {field('from', { max: days.to })}
        {field('to', { min: days.from })}
      </div>
      {error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={8} />
      ) : (
        children(data)
      )}
    </>
  );
}
