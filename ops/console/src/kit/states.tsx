import { type ReactNode, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../api/client.ts';
import { Button } from './controls/button.tsx';
import styles from './states.module.css';

const showAfterMs = 150;

/** Placeholder of rows that are on their way. Shows after a moment, so that fast replies do not flash. */
export function Loading({ rows = 4 }: { rows?: number }) {
  const { t } = useTranslation();
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), showAfterMs);
    return () => clearTimeout(timer);
  }, []);
  const lines = Array.from({ length: rows }, (_, at) => `line-${at}`);
  return (
    <div className={styles.loading} role="status" aria-busy="true" aria-label={t('state.loading')}>
      {lines.map((line) => (
        <div key={line} className={isLate ? styles.line : styles.blank} />
      ))}
    </div>
  );
}

/** Failure of a call: the sentence of the API, its code and the id of the request, and a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation();
  const refusal = error instanceof ApiError ? error : undefined;
  return (
    <div className={styles.failure} role="alert">
      <p>{sentenceOf(refusal, t)}</p>
      {refusal && refusal.status > 0 && (
        <p className={styles.details}>
          {t('state.code', { code: refusal.code })}
          {refusal.requestId && ` · ${t('state.request', { id: refusal.requestId })}`}
        </p>
      )}
      {retry && <Button onClick={retry}>{t('action.retry')}</Button>}
    </div>
  );
}

function sentenceOf(refusal: ApiError | undefined, t: (key: string) => string): string {
  if (!refusal) return t('state.broken');
  if (refusal.status === 0) return t('state.unreachable');
  if (refusal.status === 403) return `${t('state.forbidden')} ${refusal.message}`;
  return refusal.message || t('state.broken');
}

/** Place of a list without entries: why it is empty and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p className={styles.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}
