import { type TextareaHTMLAttributes, useLayoutEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../controls/button.tsx';
import { type Labelled, Labels } from '../controls/field.tsx';
import styles from './code-area.module.css';

/** Position of an error in a text. The line starts at 1, `at` at 0. */
export interface Fault {
  line: number;
  at: number;
}

interface CodeAreaProps
  extends Labelled,
    Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'value'> {
  value: string;
  /** Error to mark. The user can jump to its line. */
  fault: Fault | undefined;
}

/**
 * Code input with line numbers. Tab moves to the next element as usual, because otherwise a person
 * without a mouse could not leave the input.
 */
export function CodeArea({ label, hint, error, fault, value, ...rest }: CodeAreaProps) {
  const { t } = useTranslation();
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  const follow = () => {
    if (area.current && numbers.current) numbers.current.scrollTop = area.current.scrollTop;
  };
  const goTo = ({ at }: Fault) => {
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  // A changed text may scroll the input without an event.
  useLayoutEffect(follow);
  return (
    <>
      <Labels {...{ label, hint, error }}>
        {(control) => (
          <div className={styles.box} data-invalid={control['aria-invalid']}>
            <div ref={numbers} className={styles.numbers} aria-hidden="true">
              {value.split('\n').map((_, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number.
                <span key={at} className={at + 1 === fault?.line ? styles.faulty : undefined}>
                  {at + 1}
                </span>
              ))}
            </div>
            <textarea
              {...rest}
              {...control}
              ref={area}
              value={value}
              wrap="off"
              spellCheck={false}
              onScroll={follow}
              className={styles.area}
            />
          </div>
        )}
      </Labels>
      {fault && (
        <p className={styles.go}>
          <Button onClick={() => goTo(fault)}>{t('fault.goTo', { line: fault.line })}</Button>
        </p>
      )}
    </>
  );
}
