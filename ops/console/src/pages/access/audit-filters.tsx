import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { isoTime, localTime } from '../../kit/form/values.ts';
import type { AuditFilters as Filters } from '../../search.ts';
import styles from './access.module.css';
import { AppChoice } from './new-token.tsx';

const texts = ['actor', 'action', 'target'] as const;
const times = ['from', 'to'] as const;

interface FiltersProps {
  filters: Filters;
  change: (more: Filters) => void;
}

/** Filters of the audit log. The app filter applies immediately, the others on Enter. */
export function AuditFilters({ filters, change }: FiltersProps) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState({
    actor: filters.actor ?? '',
    action: filters.action ?? '',
    target: filters.target ?? '',
    from: localTime(filters.from),
    to: localTime(filters.to),
  });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const { from, to, ...others } = draft;
    const given = Object.fromEntries(texts.map((name) => [name, others[name].trim() || undefined]));
    change({ ...given, from: isoTime(from), to: isoTime(to) });
  };
  return (
    <search>
      <form className={styles.filters} onSubmit={onSubmit}>
        <AppChoice
          any={t('audit.anyApp')}
          value={filters.app ?? ''}
          change={(app) => change({ app: app || undefined })}
        />
        {texts.map((name) => (
          <TextField
            key={name}
            type="search"
            label={t(`audit.${name}`)}
            placeholder={t(`audit.${name}Hint`)}
            value={draft[name]}
            onChange={(event) => setDraft({ ...draft, [name]: event.target.value })}
          />
        ))}
        {times.map((name) => (
          <TextField
            key={name}
            type="datetime-local"
            label={t(`audit.${name}`)}
            value={draft[name]}
            onChange={(event) => setDraft({ ...draft, [name]: event.target.value })}
          />
        ))}
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </search>
  );
}
