import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import type { PushFilters } from '../../search.ts';
import styles from './filters.module.css';

const states = ['scheduled', 'queued', 'sending', 'paused', 'done', 'failed', 'cancelled'] as const;

/** Filters of the list of pushes. A choice applies at once, a text with Enter. */
export function Filters({ filters, change }: { filters: PushFilters; change: (more: PushFilters) => void }) {
  const { t } = useTranslation();
  const [query, setQuery] = useState(filters.q ?? '');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    change({ q: query.trim() || undefined });
  };
  return (
    <search>
      <form className={styles.filters} onSubmit={onSubmit}>
        <TextField
          type="search"
          isCompact
          label={t('pushes.search')}
          placeholder={t('pushes.search')}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <Choice
          isCompact
          label={t('pushes.state')}
          value={filters.status ?? ''}
          onChange={(event) => change({ status: event.target.value || undefined })}
        >
          <option value="">{t('pushes.anyState')}</option>
          {states.map((state) => (
            <option key={state} value={state}>
              {t(`pushState.${state}`)}
            </option>
          ))}
        </Choice>
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </search>
  );
}
