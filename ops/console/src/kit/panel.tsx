import type { ReactNode } from 'react';
import styles from './panel.module.css';
import { useTitle } from './title.ts';

/** Box with a heading and, at its right, actions or a note. */
export function Panel({ title, side, children }: { title: string; side?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.panel}>
      <header className={styles.header}>
        <h2>{title}</h2>
        {side}
      </header>
      <div className={styles.body}>{children}</div>
    </section>
  );
}

interface PageHeaderProps {
  /** Text of the heading, which the tab has too. */
  title: string;
  /** Whether the title is a name that people gave: it is not translated. */
  isName?: boolean;
  side?: ReactNode;
  children?: ReactNode;
}

/** Heading of a page with what belongs to it: its state and its actions. It names the tab. */
export function PageHeader({ title, isName = false, side, children }: PageHeaderProps) {
  useTitle(title);
  return (
    <div className={styles.pageHeader}>
      <div className={styles.pageTitle}>
        <h1 tabIndex={-1} translate={isName ? 'no' : undefined}>
          {title}
        </h1>
        {children}
      </div>
      {side && <div className={styles.actions}>{side}</div>}
    </div>
  );
}

/** Names and values, one below the other. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={styles.facts}>
      {rows.map(([name, value]) => (
        <div key={name} className={styles.fact}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
