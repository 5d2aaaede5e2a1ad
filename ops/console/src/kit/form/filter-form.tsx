import { type ReactNode, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../controls/button.tsx';
import { Choice, TextField } from '../controls/field.tsx';
import styles from './filter-form.module.css';

interface FoldedSearchProps {
  /** Number of filters that are set. The button shows it. */
  active: number;
  children: ReactNode;
}

/** Long form of filters above a list. On a phone it is closed at first, behind one button. */
export function FoldedSearch({ active, children }: FoldedSearchProps) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  return (
    <search className={isOpen ? undefined : styles.closed}>
      <div className={styles.toggle}>
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {t(active === 0 ? 'action.filters' : 'action.filtersSet', { n: active })}
        </Button>
      </div>
      <div className={styles.content}>{children}</div>
    </search>
  );
}

/**
 * Returns the text of a filter while it is entered, and a function that changes it. Another address,
 * for example by "Clear the filters" or the browser's back button, replaces the text.
 */
export function useFilterText(applied = ''): [string, (text: string) => void] {
  const [text, setText] = useState(applied);
  useEffect(() => setText(applied), [applied]);
  return [text, setText];
}

interface FilterFormProps {
  apply: () => void;
  /** Values of the filters, for a form with more than two. A phone then folds the form. */
  filters?: object;
  children: ReactNode;
}

/** Search parameters of a list that are not filters. */
const otherParameters: readonly string[] = ['cursor', 'tab'];

/** Returns the number of filters that are set. */
export const activeFilters = (filters: object): number =>
  Object.entries(filters).filter(
    ([name, value]) => value !== undefined && !otherParameters.includes(name),
  ).length;

/** Row of filters above a list. Text filters apply on Enter, select boxes immediately. */
export function FilterForm({ apply, filters, children }: FilterFormProps) {
  const { t } = useTranslation();
  const form = (
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
  );
  if (filters === undefined) return <search>{form}</search>;
  return <FoldedSearch active={activeFilters(filters)}>{form}</FoldedSearch>;
}

interface FilterTextProps {
  /** Description of what the search finds. */
  label: string;
  value: string;
  change: (value: string) => void;
}

/** Search field. */
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
 * Start or end of a time range, with the label at its side. `value` has the format of
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
  /** Text of the option that shows all rows. */
  any: string;
  value: T | undefined;
  /** Values and their texts. */
  options: (readonly [value: T, text: string])[];
  change: (value: T | undefined) => void;
}

/** Select box that filters the rows by one value. */
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
