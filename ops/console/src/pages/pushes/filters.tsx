import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { FilterChoice, FilterForm, FilterText, FilterTime } from '../../kit/form/filter-form.tsx';
import { isoTime, localTime } from '../../kit/form/local-time.ts';
import type { PushFilters } from '../../search.ts';

const states = ['scheduled', 'queued', 'sending', 'paused', 'done', 'failed', 'cancelled'] as const;
const sources = ['push', 'console', 'recurring'] as const;
const times = ['from', 'to'] as const;

/** Filters of the list of pushes. */
export function Filters({ filters, change }: { filters: PushFilters; change: (more: PushFilters) => void }) {
  const { t } = useTranslation();
  const { q = '', from, to } = filters;
  const [draft, setDraft] = useState({ q, from: localTime(from), to: localTime(to) });
  // The fields follow the address: by "Clear the filters" and by the way back.
  useEffect(() => setDraft({ q, from: localTime(from), to: localTime(to) }), [q, from, to]);
  const apply = () =>
    change({ q: draft.q.trim() || undefined, from: isoTime(draft.from), to: isoTime(draft.to) });
  return (
    <FilterForm apply={apply}>
      <FilterText
        label={t('pushes.search')}
        value={draft.q}
        change={(text) => setDraft({ ...draft, q: text })}
      />
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
      {filters.recurring !== undefined && (
        <Button onClick={() => change({ recurring: undefined })}>
          {t('pushes.ofRecurring', { id: filters.recurring })}
        </Button>
      )}
      {times.map((name) => (
        <FilterTime
          key={name}
          label={t(`pushes.${name}`)}
          value={draft[name]}
          change={(time) => setDraft({ ...draft, [name]: time })}
        />
      ))}
    </FilterForm>
  );
}
