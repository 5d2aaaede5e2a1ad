import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../controls/button.tsx';
import { Choice, TextField } from '../controls/field.tsx';
import styles from './filter-form.module.css';

/** Row of filters above a list. Its texts apply with Enter, its choices at once. */
export function FilterForm({ apply, children }: { apply: () => void; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <search>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        {children}
        <Button type="submit">{t('action.search')}</Button>
      </form>
    </search>
  );
}

interface FilterTextProps {
  /** What the search finds. */
  label: string;
  value: string;
  change: (value: string) => void;
}

/** Search by a text. */
export function FilterText({ label, value, change }: FilterTextProps) {
  return (
    <TextField
      type="search"
      isCompact
      label={label}
      placeholder={label}
      value={value}
      onChange={(event) => change(event.target.value)}
    />
  );
}

/**
 * Begin or end of the time of the rows; its label stands beside it. `value` is as of a field
 * `datetime-local`.
 */
export function FilterTime({ label, value, change }: FilterTextProps) {
  return (
    <label className={styles.time}>
      <span>{label}</span>
      <input type="datetime-local" value={value} onChange={(event) => change(event.target.value)} />
    </label>
  );
}

interface FilterChoiceProps<T extends string> {
  label: string;
  /** Text of the option that leaves everything in the list. */
  any: string;
  value: T | undefined;
  /** Values with their texts. */
  options: (readonly [value: T, text: string])[];
  change: (value: T | undefined) => void;
}

/** Choice of one value that the rows of the list have, or of all. */
export function FilterChoice<T extends string>(props: FilterChoiceProps<T>) {
  const { label, any, value, options, change } = props;
  const choose = (chosen: string) => change(options.find(([option]) => option === chosen)?.[0]);
  return (
    <Choice
      isCompact
      label={label}
      value={value ?? ''}
      onChange={(event) => choose(event.target.value)}
    >
      <option value="">{any}</option>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </Choice>
  );
}
