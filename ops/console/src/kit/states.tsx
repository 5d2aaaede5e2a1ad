import { type ReactNode, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../api/client.ts';
import { useRefusalText, withBrands } from '../text/explanation.ts';
import { Button } from './controls/button.tsx';
import { Marked } from './data/values.tsx';
import styles from './states.module.css';

const showAfterMs = 150;

/**
 * Placeholder for rows that are loading. It appears after a moment, so that fast replies do not
 * flicker.
 */
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

/** Failed call: the message of the API, its code, the request id, and a retry button. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation();
  const refusal = error instanceof ApiError ? error : undefined;
  return (
    <div className={styles.failure} role="alert">
      <RefusalText refusal={refusal} />
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

/** Refusal by the server in the page's language. A Chinese page also shows the server's text. */
function RefusalText({ refusal }: { refusal: ApiError | undefined }) {
  const { t } = useTranslation();
  const { text, original } = useRefusalText(refusal);
  return (
    <>
      <p>
        <Marked
          text={withBrands(refusal?.status === 403 ? `${t('state.forbidden')} ${text}` : text)}
        />
      </p>
      {original && (
        <p className={styles.original} lang="en">
          {original}
        </p>
      )}
    </>
  );
}

/** Empty list: the reason, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p className={styles.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}
