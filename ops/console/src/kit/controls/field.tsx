import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { Marked } from '../data/values.tsx';
import styles from './field.module.css';

/** True if keys belong to an element in which a person types or chooses. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Texts of a field. */
export interface Labelled {
  label: string;
  /** Sentence below the field. */
  hint?: string | undefined;
  /** Reason why the value is invalid. */
  error?: string | undefined;
  /** True to hide the label visually, as in a row of filters. Screen readers still read it. */
  isCompact?: boolean | undefined;
}

interface Control {
  id: string;
  'aria-invalid': true | undefined;
  'aria-describedby': string | undefined;
}

/** Label, error and hint of a field. */
export function Labels({
  label,
  hint,
  error,
  isCompact = false,
  children,
}: Labelled & { children: (control: Control) => ReactNode }) {
  const id = useId();
  const described =
    [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={isCompact ? 'visually-hidden' : styles.label}>
        {label}
      </label>
      {children({ id, 'aria-invalid': error ? true : undefined, 'aria-describedby': described })}
      {error && (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          <Marked text={hint} />
        </p>
      )}
    </div>
  );
}

/** Single-line input with its label. */
export function TextField({
  label,
  hint,
  error,
  isCompact,
  ...rest
}: Labelled & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Labels {...{ label, hint, error, isCompact }}>
      {(control) => <input {...rest} {...control} className={styles.input} />}
    </Labels>
  );
}

/** Select box with its label. */
export function Choice({
  label,
  hint,
  error,
  isCompact,
  children,
  ...rest
}: Labelled & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Labels {...{ label, hint, error, isCompact }}>
      {(control) => (
        <select {...rest} {...control} className={styles.input}>
          {children}
        </select>
      )}
    </Labels>
  );
}

/** Multi-line input with its label. `isCode` uses a monospace font. */
export function TextArea({
  label,
  hint,
  error,
  isCompact,
  isCode = false,
  ...rest
}: Labelled & { isCode?: boolean } & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Labels {...{ label, hint, error, isCompact }}>
      {(control) => (
        <textarea
          rows={4}
          {...rest}
          {...control}
          spellCheck={!isCode}
          className={`${styles.input} ${styles.area} ${isCode ? styles.code : ''}`}
        />
      )}
    </Labels>
  );
}

/** Checkbox with its label on the right. */
export function Checkbox({
  label,
  hint,
  ...rest
}: Pick<Labelled, 'label' | 'hint'> & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input {...rest} id={id} type="checkbox" aria-describedby={hint && `${id}-hint`} />
      <label htmlFor={id}>{label}</label>
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}
