import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { TextField } from '../../kit/controls/field.tsx';
import { FilterForm, FilterText } from '../../kit/form/filter-form.tsx';
import type { DeviceFilters } from '../../search.ts';

interface IdFiltersProps {
  filters: DeviceFilters;
  change: (filters: DeviceFilters) => void;
  /** What the search finds. */
  label: string;
  /** Example of a condition. */
  example: string;
}

/** Search by an id, or by a condition as JSON; both apply with Enter. */
export function IdFilters({ filters, change, label, example }: IdFiltersProps) {
  const { t } = useTranslation();
  const [query, setQuery] = useState(filters.q ?? '');
  const [where, setWhere] = useState(filters.where ?? '');
  const [error, setError] = useState<string>();
  const apply = () => {
    const condition = where.trim() || undefined;
    if (condition !== undefined && !isJson(condition)) return setError(t('devices.badWhere'));
    setError(undefined);
    change({ q: query.trim() || undefined, where: condition });
  };
  return (
    <FilterForm apply={apply}>
      <FilterText label={label} value={query} change={setQuery} />
      <TextField
        isCompact
        error={error}
        label={t('devices.where')}
        placeholder={example}
        spellCheck={false}
        value={where}
        onChange={(event) => setWhere(event.target.value)}
      />
    </FilterForm>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
