import type { ReactNode } from 'react';
import styles from './badge.module.css';

/** Meaning of a colour; the text says the same. */
export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'idle';

/** Short state in a coloured pill. */
export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}
