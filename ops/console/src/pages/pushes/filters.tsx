import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { FilterChoice, FilterForm, FilterText } from '../../kit/form/filter-form.tsx';
import type { PushFilters } from '../../search.ts';

const states = ['scheduled', 'queued', 'sending', 'paused', 'done', 'failed', 'cancelled'] as const;
const sources = ['push', 'console'] as const;

/** Filters of the list of pushes. */
export function Filters({ filters, change }: { filters: PushFilters; change: (more: PushFilters) => void }) {
  const { t } = useTranslation();
  const [query, setQuery] = useState(filters.q ?? '');
  return (
    <FilterForm apply={() => change({ q: query.trim() || undefined })}>
      <FilterText label={t('pushes.search')} value={query} change={setQuery} />
      <FilterChoice
        label={t('pushes.state')}
        any={t('pushes.anyState')}
        value={filters.status}
        options={states.map((state) => [state, t(`pushState.${state}`)] as const)}
        change={(status) => change({ status })}
      />
      <FilterChoice
        label={t('pushes.source')}
        any={t('pushes.anySource')}
        value={filters.source}
        options={sources.map((source) => [source, t(`pushSource.${source}`)] as const)}
        change={(source) => change({ source })}
      />
    </FilterForm>
  );
}
