import type { ReactNode } from 'react';
import styles from './notice.module.css';

/** Sentence about the whole page, with a button if something can be done about it. */
export function Notice({ look, children }: { look: 'plain' | 'warn'; children: ReactNode }) {
  return (
    <p className={styles[look]} role="status">
      {children}
    </p>
  );
}
